#pragma once

#include <filesystem>
#include <memory>

#include "training/files/event_file.h"

namespace plexaura {

// Keeps the events of this process in OUTPUT/events as long as the object lives; see tools/why. Where tools/run has
// started the process, its folder gets a link to that file, or the events themselves if there is no output, or none can
// be kept there, or another run holds OUTPUT: this one will be refused, and must not hide what that one does. Null where
// nobody wants them.
std::unique_ptr<EventFile> begin_events(const std::filesystem::path& output);

}  // namespace plexaura

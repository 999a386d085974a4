#pragma once

#include <filesystem>
#include <memory>

#include "training/files/event_file.h"

namespace plexaura {

// Keeps the events of this process in OUTPUT/events while the returned object lives; see tools/why. If
// tools/run has started the process, its folder gets a link to that file. It gets the events themselves if
// there is no output, if the file cannot be created, or if another run has locked OUTPUT: this run will be
// refused then, and must not hide the events of the other one. Returns null if the events are not needed.
std::unique_ptr<EventFile> begin_events(const std::filesystem::path& output);

}  // namespace plexaura

#pragma once

#include <filesystem>
#include <memory>

#include "training/files/event_file.h"

namespace plexaura {

// Keeps the events of this process in OUTPUT/events while the returned object lives. tools/why reads them. If
// tools/run has started the process, its folder gets a link to that file. The events are kept in the folder
// of tools/run instead if OUTPUT is empty, if the file cannot be created, or if another run has locked
// OUTPUT. In the last case this run will be refused, and must not overwrite the events of the other run.
// Returns null if they cannot be kept in OUTPUT and tools/run has not started the process.
std::unique_ptr<EventFile> begin_events(const std::filesystem::path& output);

}  // namespace plexaura

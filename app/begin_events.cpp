#include "app/begin_events.h"

#include <fmt/format.h>
#include <string>
#include <system_error>

#include "distributed/wire/launcher.h"
#include "training/files/folder_lock.h"

namespace plexaura {

namespace fs = std::filesystem;

std::unique_ptr<EventFile> begin_events(const fs::path& output) {
  std::error_code error;
  const fs::path watched = folder_of_launcher("PLEXAURA_RUN");
  const LaunchedRank launched = launched_rank().value_or(LaunchedRank{});
  const auto keep_in = [&](const fs::path& folder) {
    return std::make_unique<EventFile>(folder, launched.rank, launched.ranks, launched.job);
  };
  if (!output.empty() && !is_locked(output / FolderLock::file_name)) {
    auto events = keep_in(output / "events");
    const std::string name = fmt::format("rank-{:04}", launched.rank);
    const fs::path target = fs::absolute(output / "events" / name, error);
    if (events->keeps() && !watched.empty()) fs::create_symlink(target, watched / name, error);
    if (events->keeps()) return events;
  }
  return watched.empty() ? nullptr : keep_in(watched);
}

}  // namespace plexaura

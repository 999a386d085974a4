#include "models/programs/begin_events.h"

#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <system_error>

#include "distributed/launcher.h"

namespace plexaura {

namespace fs = std::filesystem;

std::unique_ptr<EventFile> begin_events(const fs::path& output) {
  std::error_code error;
  const char* const variable = std::getenv("PLEXAURA_RUN");
  fs::path watched = variable == nullptr ? "" : variable;
  if (!fs::is_directory(watched, error)) watched.clear();  // on another machine than that of tools/run
  const fs::path folder = output.empty() ? watched : output / "events";
  if (folder.empty()) return nullptr;
  const LaunchedRank launched = launched_rank().value_or(LaunchedRank{});
  auto events = std::make_unique<EventFile>(folder, launched.rank, launched.ranks, launched.job);
  const std::string name = fmt::format("rank-{:04}", launched.rank);
  if (events->keeps() && !watched.empty() && folder != watched)
    fs::create_symlink(fs::absolute(folder / name), watched / name, error);
  return events;
}

}  // namespace plexaura

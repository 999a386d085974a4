#include "models/programs/write_profile.h"

#include <memory>
#include <optional>
#include <string_view>

#include "distributed/long_text.h"
#include "training/on_rank_0.h"

namespace plexaura {

namespace {

constexpr const char* what = "the profile of a rank";
constexpr double patience = 600;  // seconds, for rank 0 may have to do with other ranks first

void write_all_events(Communicator& messages, TraceFile& file, const std::string& own) {
  file.begin_rank();
  file.write(own);
  for (int rank = 1; rank < messages.size(); ++rank) {
    file.begin_rank();
    receive_text(
        messages, {.rank = rank, .deadline_seconds = patience},
        [&](std::string_view piece) { file.write(piece); }, what);
  }
  file.finish();
}

}  // namespace

// Events travel in messages, beside the calls that tell everybody that ranks are at work.
void write_profile(Communicator& ranks, const Profile& profile, const std::string& path) {
  std::optional<TraceFile> file;
  const std::string events = together(ranks, "creating the profile", [&] {
    if (ranks.rank() == 0) file.emplace(path);
    return profile.events(ranks.rank());
  });
  const std::unique_ptr<Communicator> messages = ranks.duplicate("the profiles of the ranks");
  on_some_ranks(ranks, true, "writing the profile", [&] {
    if (file) return write_all_events(*messages, *file, events);
    send_text(*messages, {.rank = 0, .deadline_seconds = patience}, events, what);
  });
}

}  // namespace plexaura

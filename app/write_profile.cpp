#include "app/write_profile.h"

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "distributed/communicator/long_text.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

constexpr const char* what = "the profile of a rank";
constexpr double patience = 600;  // in seconds; long, because rank 0 may receive from other ranks first
constexpr const char* clocks = "the clocks of the ranks";
constexpr int questions = 10;  // number of questions, of which the fastest counts

void send_number(Communicator& ranks, int to, double number) {
  ranks.send({.rank = to}, std::as_bytes(std::span(&number, 1)), clocks);
}

double hear(Communicator& ranks, int from) {
  double number = 0;
  ranks.receive({.rank = from}, std::as_writable_bytes(std::span(&number, 1)), clocks);
  return number;
}

// Called on rank 0. Returns the number of seconds by which the profile of another rank was made later,
// assuming that the other rank read its clock halfway between question and answer.
double ask(Communicator& ranks, int rank, const Profile& profile) {
  double least = std::numeric_limits<double>::infinity();
  double later = 0;
  for (int i = 0; i < questions; ++i) {
    const double asked = profile.now();
    send_number(ranks, rank, 0);
    const double theirs = hear(ranks, rank);
    const double answered = profile.now();
    if (answered - asked >= least) continue;
    least = answered - asked;
    later = (asked + answered) / 2 - theirs;
  }
  return later;
}

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

void align_clocks(Communicator& ranks, Profile& profile) {
  if (ranks.rank() == 0) {
    for (int rank = 1; rank < ranks.size(); ++rank) send_number(ranks, rank, ask(ranks, rank, profile));
    return;
  }
  for (int i = 0; i < questions; ++i) {
    hear(ranks, 0);
    send_number(ranks, 0, profile.now());
  }
  profile.begin_after(hear(ranks, 0));
}

// Writes the profile. Events are sent over a separate communicator. Meanwhile on_some_ranks() shows the waiting ranks, on
// `ranks`, that this rank is still working.
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

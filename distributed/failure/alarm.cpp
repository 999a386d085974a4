#include "distributed/failure/alarm.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "distributed/failure/failure.h"
#include "distributed/group/tags.h"
#include "distributed/group/wait.h"

namespace plexaura {
namespace {

// How long ranks that wait may need to answer. Ranks of one machine find a death at about the same time, and
// the launcher soon ends those that are left: then there is less time to agree on who speaks.
constexpr double kSecondsToAnswer = 1.0;
constexpr double kSecondsAfterDeath = 0.2;
// How long a verdict may need to leave this rank: less than ranks that hear it keep silent.
constexpr double kSecondsToTell = 0.1;

}  // namespace

Alarm::Alarm(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      answers_(static_cast<std::size_t>(transport_->size())),
      lowest_asker_(transport_->size()) {
  for (int rank = 0; rank < transport_->size(); ++rank) {
    if (rank != transport_->rank()) others_.push_back(rank);
  }
}

void Alarm::set_topology(const Topology& topology) {
  const std::lock_guard lock(mutex_);
  topology_ = topology;
}

bool Alarm::raised() const {
  const std::lock_guard lock(mutex_);
  return verdict_.has_value();
}

void Alarm::look(const CallSignature& at) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread of this rank looks
  hear(at);
  check_over();
  if (find_dead()) settle(at, 0);
}

void Alarm::give_up(const CallSignature& at, double deadline_seconds) {
  const std::lock_guard lock(mutex_);
  hear(at);
  check_over();
  settle(at, deadline_seconds);
}

void Alarm::fail(const std::string& text) {
  const std::lock_guard lock(mutex_);
  check_over();
  tell(rank(), text);
  throw DeviceError(text);
}

void Alarm::tell_left_in_error(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  tell(rank, fmt::format("rank {} has left with an error of its own, which it reports", rank));
}

void Alarm::end_with_error_of(int rank) {
  tell_left_in_error(rank);
  const std::lock_guard lock(mutex_);
  throw_quietly(verdict_->speaker, verdict_->text);
}

// Agrees with all that are still there on who speaks, and ends this rank.
void Alarm::settle(const CallSignature& at, double deadline_seconds) {
  send(Note::Kind::question, rank(), describe(at), others_);
  listen(find_dead() ? kSecondsAfterDeath : std::min(kSecondsToAnswer, deadline_seconds), at, true);
  if (lowest_asker_ < rank()) listen(kSecondsToAnswer, at, false);
  const std::string text = describe_loss(at, deadline_seconds);
  tell(rank(), text);
  throw DeviceError(text);
}

void Alarm::listen(double seconds, const CallSignature& at, bool until_all_have_answered) {
  for (Wait wait(seconds); !wait.expired(); wait.pause()) {
    hear(at);
    check_over();
    if (until_all_have_answered && all_have_answered()) return;
  }
}

void Alarm::check_over() const {
  if (verdict_) throw_quietly(verdict_->speaker, verdict_->text);
}

void Alarm::hear(const CallSignature& at) {
  while (const auto envelope = transport_->waiting(Transport::anyone, tag::note)) {
    Note note;
    Request request = transport_->receive(as_message(note), envelope->from, tag::note);
    while (!transport_->done(request)) {  // it is here already
    }
    take(note, envelope->from, at);
  }
}

void Alarm::take(const Note& note, int from, const CallSignature& at) {
  if (note.kind == Note::Kind::verdict) {
    if (!verdict_) verdict_ = {note.speaker, note.text.data()};
    return;
  }
  answers_[static_cast<std::size_t>(from)] = note.text.data();
  if (note.kind == Note::Kind::answer) return;
  lowest_asker_ = std::min(lowest_asker_, from);
  send(Note::Kind::answer, rank(), describe(at), std::span(&from, 1));
}

void Alarm::send(Note::Kind kind, int speaker, std::string_view text, std::span<const int> to) {
  Sent& sent = sent_.emplace_back();
  sent.note.kind = kind;
  sent.note.speaker = speaker;
  std::copy_n(text.begin(), std::min(text.size(), sent.note.text.size() - 1), sent.note.text.begin());
  for (const int rank : to) sent.requests.push_back(transport_->send(as_message(sent.note), rank, tag::note));
}

// Not everyone is there to take what was sent.
void Alarm::push(double seconds) {
  const auto under_way = [&](Request& request) { return !transport_->done(request); };
  std::vector<Request>& requests = sent_.back().requests;
  for (Wait wait(seconds); !requests.empty() && !wait.expired(); wait.pause()) {
    requests.erase(std::partition(requests.begin(), requests.end(), under_way), requests.end());
  }
}

void Alarm::tell(int speaker, const std::string& text) noexcept {
  if (verdict_) return;
  verdict_ = {speaker, text};
  try {
    send(Note::Kind::verdict, speaker, text, others_);
    push(kSecondsToTell);
  } catch (const std::exception&) {  // the others will reach their deadlines instead
  }
}

bool Alarm::all_have_answered() const {
  return std::ranges::all_of(others_,
                             [&](int rank) { return answers_[static_cast<std::size_t>(rank)].has_value(); });
}

std::optional<int> Alarm::find_dead() const {
  if (!topology_) return std::nullopt;
  for (const int rank : topology_->own_node_ranks()) {
    if (topology_->is_dead(rank)) return rank;
  }
  return std::nullopt;
}

std::string Alarm::describe_loss(const CallSignature& at, double deadline_seconds) const {
  if (const auto dead = find_dead()) {
    return fmt::format("rank {} on {} has died while rank {} waited at {}", *dead, topology_->of(*dead).host,
                       rank(), describe(at));
  }
  std::vector<int> absent;
  for (const int other : others_) {
    if (!answers_[static_cast<std::size_t>(other)]) absent.push_back(other);
  }
  return absent.empty() ? describe_stall(at, deadline_seconds)
                        : describe_absent(absent, at, deadline_seconds);
}

std::string Alarm::describe_absent(const std::vector<int>& absent, const CallSignature& at,
                                   double deadline_seconds) const {
  const std::string names = topology_ ? topology_->list(absent) : list_ranks(absent);
  const std::string begin =
      fmt::format("{} did not come to {} within {:.3g} s", names, describe(at), deadline_seconds);
  const std::vector<std::string> silent =
      topology_ ? topology_->hosts_without(absent) : std::vector<std::string>();
  if (silent.empty()) return begin + ": stopped, stuck, or still at work elsewhere";
  const std::string& own = topology_->of(rank()).host;
  const bool is_alone = static_cast<int>(silent.size()) + 1 == topology_->nodes();
  return fmt::format("{}: stopped, stuck, still at work elsewhere, or the link {} {} is down", begin,
                     is_alone ? "of " + own + " to" : "to", fmt::join(silent, " or "));
}

// Every rank waits, so none is lost.
std::string Alarm::describe_stall(const CallSignature& at, double deadline_seconds) const {
  const std::string mine = describe(at);
  for (const int other : others_) {
    const std::string& theirs = *answers_[static_cast<std::size_t>(other)];
    if (theirs == mine) continue;
    return fmt::format(
        "rank {} waited {:.3g} s at {} while rank {} waits at {}: all ranks must make the same calls in the "
        "same order",
        rank(), deadline_seconds, mine, other, theirs);
  }
  return fmt::format(
      "rank {} waited {:.3g} s at {}, where all ranks have come by now: a rank was late, or the network is "
      "slow; raise distributed.deadline_seconds",
      rank(), deadline_seconds, mine);
}

}  // namespace plexaura

#include "distributed/failure/alarm.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <utility>

#include "core/base/print.h"
#include "core/exchange/rank_lost.h"
#include "distributed/failure/rank_ranges.h"
#include "distributed/failure/stopped_ranks.h"
#include "distributed/wire/failure.h"
#include "distributed/wire/tags.h"
#include "distributed/wire/wait.h"

namespace plexaura {
namespace {

// The longest time that waiting ranks may need to answer. After a death the time is shorter: ranks of one
// machine notice it at about the same time, and the launcher soon ends those that are left.
constexpr double seconds_to_answer = 1.0;
constexpr double seconds_after_death = 0.2;
// The longest time that the library may need to notice ranks that were killed or cannot be reached.
constexpr double seconds_to_die = 3.0;
// The longest time that a rank waits until its verdict (the sentence about the loss) has been sent. It is short,
// because some ranks may never receive the verdict.
constexpr double seconds_to_tell = 0.1;

bool is_spared(int rank, const PendingCall& call) {
  return std::ranges::find(call.spared, rank) != call.spared.end();
}

std::string describe_leaving(int rank) {
  return fmt::format("rank {} has left with an error of its own, which it reports", rank);
}

template <class Kind>
[[noreturn]] void throw_on(bool speaks, int speaker, const Kind& error) {
  if (speaks) throw error;
  if constexpr (std::is_same_v<Kind, RankLost>)
    throw Remote<Kind>(speaker, error);
  else
    throw Remote<Kind>(speaker, error.what());
}

}  // namespace

Alarm::Alarm(std::unique_ptr<Transport> transport, bool outlives)
    : transport_(std::move(transport)),
      outlives_(outlives),
      outbox_(*transport_),
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

void Alarm::look(const PendingCall& call) {
  if (is_interrupted_) throw WaitInterrupted(fmt::format("the wait at {} was given up", describe(call.at)));
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread of this rank holds the lock, and does the work
  hear(call.at);
  const std::vector<int> dead = find_dead(call);
  // If there is a verdict, the run ends, even if ranks can outlive others: the dead ranks may have ended
  // because of the verdict.
  if (outlives_ && !dead.empty() && !verdict_) continue_without(dead, call);
  if (!verdict_ && dead.empty()) return;
  const bool speaks = !verdict_ && agree_on_speaker(call);
  end(std::move(lock), speaks);
}

void Alarm::listen(const PendingCall& call) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  hear(call.at);
  if (verdict_) end(std::move(lock), false);
}

void Alarm::give_up(const PendingCall& call) {
  std::unique_lock lock(mutex_);
  hear(call.at);
  const bool speaks = !verdict_ && agree_on_speaker(call);
  end(std::move(lock), speaks);
}

void Alarm::fail(const std::string& text) {
  std::unique_lock lock(mutex_);
  const bool speaks = !verdict_;
  if (speaks) tell({rank(), text});
  end(std::move(lock), speaks);
}

void Alarm::end_with_error_of(int rank, int exit_status) {
  std::unique_lock lock(mutex_);
  if (!verdict_) tell({rank, describe_leaving(rank), {}, {}, exit_status});
  end(std::move(lock), false);
}

// Throws the error of the verdict. Unlocks before that, because other threads of this rank have to learn too
// that the run is over.
void Alarm::end(std::unique_lock<std::mutex> lock, bool speaks) {
  const Verdict verdict = *verdict_;
  lock.unlock();
  if (!verdict.lost.empty())
    throw_on(speaks, verdict.speaker, RankLost(verdict.text, verdict.lost, verdict.call));
  if (const UserError mistake(verdict.text); verdict.exit_status == mistake.exit_status())
    throw_on(speaks, verdict.speaker, mistake);
  throw_on(speaks, verdict.speaker, DeviceError(verdict.text));
}

// Agrees with all answering ranks on which of them reports. Returns true if this rank reports.
bool Alarm::agree_on_speaker(const PendingCall& call) {
  if (call.at.call == Call::leave_in_error) {
    tell({rank(), describe_leaving(number(rank())), {}, {}, exit_status(call.at)});
    return false;
  }
  std::ranges::fill(answers_, std::nullopt);  // drops answers to an earlier question
  send(Note::Kind::question, rank(), describe(call.at), others_);
  const bool dead = !find_dead(call).empty();
  listen(dead ? seconds_after_death : std::min(seconds_to_answer, call.deadline_seconds), call.at, true);
  if (lowest_asker_ < rank()) listen(seconds_to_answer, call.at, false);
  if (!verdict_ && outlives_) bury_absent(call);
  if (verdict_) return false;
  tell(judge(call));
  return true;
}

// Waits up to `seconds_to_die` until ranks that do not answer are dead, and throws if any is. If all members of the
// call have come, one of them may wait in another call for a rank that does not answer.
void Alarm::bury_absent(const PendingCall& call) {
  std::vector<int> missing = absent(call);
  if (missing.empty()) missing = silent(others_, call);
  if (missing.empty()) return;
  for (const std::string& list : rank_ranges(missing, sizeof(Note::text) - 1))
    send(Note::Kind::absent, rank(), list, others_);
  if (topology_) kill_stopped(*topology_, missing);
  for (Wait wait(seconds_to_die); !verdict_ && !wait.expired(); wait.pause()) {
    hear(call.at);
    if (wait.is_time_to_look()) transport_->drop_silent_links();
    if (std::ranges::includes(find_dead(call), missing)) break;
  }
  if (const std::vector<int> dead = find_dead(call); !verdict_ && !dead.empty()) continue_without(dead, call);
}

void Alarm::listen(double seconds, const CallSignature& at, bool until_all_have_answered) {
  for (Wait wait(seconds); !verdict_ && !wait.expired(); wait.pause()) {
    hear(at);
    if (until_all_have_answered && all_have_answered()) return;
  }
}

void Alarm::hear(const CallSignature& at) {
  while (const auto envelope = transport_->waiting(Transport::anyone, tag::note)) {
    Note note;
    Request request = transport_->receive(as_message(note), envelope->from, tag::note);
    while (!transport_->done(request)) {  // the message has already arrived, so this ends at once
    }
    take(note, envelope->from, at);
  }
}

void Alarm::take(const Note& note, int from, const CallSignature& at) {
  if (note.kind == Note::Kind::verdict) {
    if (!verdict_) verdict_ = unpack(note.speaker, note.text.data());
    return;
  }
  if (note.kind == Note::Kind::absent) {
    if (topology_) kill_stopped(*topology_, read_rank_ranges(note.text.data()));
    return;
  }
  answers_[static_cast<std::size_t>(from)] = note.text.data();
  if (note.kind == Note::Kind::answer) return;
  lowest_asker_ = std::min(lowest_asker_, from);
  send(Note::Kind::answer, rank(), describe(at), std::span(&from, 1));
}

void Alarm::send(Note::Kind kind, int speaker, std::string_view text, std::span<const int> to) {
  Note note;
  note.kind = kind;
  note.speaker = speaker;
  std::copy_n(text.begin(), std::min(text.size(), note.text.size() - 1), note.text.begin());
  for (const int rank : to) outbox_.send(as_message(note), rank, tag::note);
}

// Packs the exit status, the lost ranks, the call, and the sentence, which is cut if it is too long. If the
// lost ranks form too many ranges, only the first ones are packed.
std::string Alarm::pack(const Verdict& verdict) {
  const std::vector<std::string> lost = rank_ranges(verdict.lost, sizeof(Note::text) / 2);
  return fmt::format("{} {}\n{}\n{}", verdict.exit_status, lost.empty() ? "" : lost.front(), verdict.call,
                     verdict.text);
}

Alarm::Verdict Alarm::unpack(int speaker, std::string_view packed) {
  Verdict verdict{speaker, {}};
  std::istringstream text{std::string(packed)};
  std::string numbers;
  std::getline(text, numbers);
  std::getline(text, verdict.call);
  std::getline(text, verdict.text, '\0');
  std::istringstream begin(numbers);
  begin >> verdict.exit_status;
  std::string ranks;
  std::getline(begin, ranks);
  verdict.lost = read_rank_ranges(ranks);
  return verdict;
}

void Alarm::tell(Verdict verdict) {
  verdict_ = std::move(verdict);
  try {
    send(Note::Kind::verdict, verdict_->speaker, pack(*verdict_), others_);
    // The wait is short, because some ranks may never receive the verdict.
    for (Wait wait(seconds_to_tell); !outbox_.all_left() && !wait.expired();) wait.pause();
  } catch (const std::exception&) {  // ignored: the other ranks reach their deadlines instead
  }
}

bool Alarm::all_have_answered() const {
  return std::ranges::all_of(others_,
                             [&](int rank) { return answers_[static_cast<std::size_t>(rank)].has_value(); });
}

// Returns the ranks that are known to be dead, without those that the call spares. If `outlives_` is true, returns
// only the deaths that the library has noticed, because the library could not exclude other ranks.
std::vector<int> Alarm::find_dead(const PendingCall& call) {
  std::vector<int> dead = transport_->dead();
  std::erase_if(dead, [&](int rank) { return is_spared(rank, call); });
  if (outlives_ || !topology_) return dead;
  for (const int rank : topology_->own_node_ranks())
    if (topology_->is_dead(rank) && std::ranges::find(dead, rank) == dead.end()) dead.push_back(rank);
  std::ranges::sort(dead);
  return dead;
}

// Throws a RankLost after which the ranks continue. If no rank catches it, the lowest rank that is left
// prints it.
void Alarm::continue_without(const std::vector<int>& dead, const PendingCall& call) const {
  const RankLost loss(describe_death(dead, call), numbers_of(dead), describe(call.at), true);
  int lowest = 0;
  while (std::ranges::find(dead, lowest) != dead.end() || is_spared(lowest, call)) ++lowest;
  if (lowest == rank()) throw loss;
  throw Remote<RankLost>(lowest, loss);
}

// Returns the ranks of `among` that have not answered.
std::vector<int> Alarm::silent(std::span<const int> among, const PendingCall& call) const {
  std::vector<int> found;
  std::ranges::copy_if(among, std::back_inserter(found), [&](int other) {
    return other != rank() && !is_spared(other, call) && !answers_[static_cast<std::size_t>(other)];
  });
  return found;
}

// Returns the members of the call that have not answered.
std::vector<int> Alarm::absent(const PendingCall& call) const {
  return silent(call.members.empty() ? std::span<const int>(others_) : call.members, call);
}

// Returns the facts that are known about the loss, with this rank as the one that reports it.
Alarm::Verdict Alarm::judge(const PendingCall& call) {
  if (const std::vector<int> dead = find_dead(call); !dead.empty())
    return {rank(), describe_death(dead, call), numbers_of(dead), describe(call.at)};
  const std::span<const int> members = call.members.empty() ? std::span<const int>(others_) : call.members;
  const std::vector<int> missing = absent(call);
  const std::vector<int> lost = numbers_of(silent(others_, call));
  if (missing.empty()) return {rank(), describe_stall(members, call), lost, describe(call.at)};
  return {rank(), describe_absent(missing, call), lost, describe(call.at)};
}

int Alarm::number(int rank) const { return topology_ ? topology_->number(rank) : rank; }

std::vector<int> Alarm::numbers_of(const std::vector<int>& ranks) const {
  return topology_ ? topology_->numbers_of(ranks) : ranks;
}

std::string Alarm::describe_death(const std::vector<int>& dead, const PendingCall& call) const {
  const std::string host = topology_ ? fmt::format(" on {}", topology_->of(dead.front()).host) : "";
  return fmt::format("rank {}{} has died while rank {} waited at {}", number(dead.front()), host,
                     number(rank()), describe(call.at));
}

std::string Alarm::describe_absent(const std::vector<int>& absent, const PendingCall& call) const {
  const std::string names = topology_ ? topology_->list(absent) : list_ranks(absent);
  const std::string begin =
      fmt::format("{} did not come to {} within {:.3g} s", names, describe(call.at), call.deadline_seconds);
  const std::vector<std::string> hosts =
      topology_ ? topology_->hosts_without(absent) : std::vector<std::string>();
  if (hosts.empty()) return begin + ": stopped, stuck, or still at work elsewhere";
  const std::string& own = topology_->of(rank()).host;
  const bool is_alone = static_cast<int>(hosts.size()) + 1 == topology_->nodes();
  return fmt::format("{}: stopped, stuck, still at work elsewhere, or the link {} {} is down", begin,
                     is_alone ? "of " + own + " to" : "to", fmt::join(hosts, " or "));
}

// Returns a sentence for the case that every member waits. A member that waits in another call may wait for a
// rank that is no member of this call.
std::string Alarm::describe_stall(std::span<const int> members, const PendingCall& call) const {
  const std::string begin =
      fmt::format("rank {} waited {:.3g} s at {}", number(rank()), call.deadline_seconds, describe(call.at));
  for (const int other : members) {
    if (other == rank()) continue;
    const std::string& theirs = *answers_[static_cast<std::size_t>(other)];
    if (theirs == describe(call.at)) continue;
    const std::string both = fmt::format("{} while rank {} waits at {}", begin, number(other), theirs);
    if (const std::vector<int> lost = silent(others_, call); !lost.empty())
      return fmt::format("{}, and {} did not answer: stopped, stuck, or still at work elsewhere", both,
                         list_ranks(numbers_of(lost)));
    return both + ": all ranks must make the same calls in the same order";
  }
  return begin +
         ", where all ranks are now: a rank was late, or the network is slow; raise "
         "distributed.deadline_seconds";
}

}  // namespace plexaura

#include "distributed/communicator/mailbox.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/events.h"

namespace plexaura {

namespace {

// The seconds for which the last messages of a dead process may still arrive.
constexpr double seconds_of_dying = 1;

}  // namespace

Mailbox::Mailbox(std::unique_ptr<Transport> transport, const Topology& topology, std::shared_ptr<Alarm> alarm,
                 double deadline_seconds)
    : transport_(std::move(transport)),
      topology_(topology),
      alarm_(std::move(alarm)),
      deadline_(deadline_seconds),
      outbox_(*transport_) {}

Mailbox::~Mailbox() {
  while (!arriving_.empty()) give_up(std::prev(arriving_.end()));
}

Posted Mailbox::post(int to, int tag, std::span<const std::byte> bytes) {
  if (to < 0 || to >= transport_->size() || to == transport_->rank() || tag < 0)
    throw UserError(
        fmt::format("rank {} cannot post a letter with tag {} to rank {} of {}: give another rank, "
                    "and a tag of at least 0",
                    transport_->rank(), tag, to, transport_->size()));
  if (is_lost(to)) return Posted::lost;
  const Outbox::Load load = outbox_.load(to);
  if (load.bytes + bytes.size() - std::max(load.longest, bytes.size()) > most_bytes) return Posted::full;
  outbox_.send(bytes, to, tag);
  return Posted::sent;
}

bool Mailbox::drive(int tag, std::int64_t most_arriving) {
  if (std::ranges::count(arriving_, tag, &Arriving::tag) < most_arriving) begin_next(tag);
  const bool all_arrived =
      std::ranges::all_of(arriving_, [this](Arriving& letter) { return has_arrived(letter); });
  return outbox_.under_way() > 0 || !all_arrived;
}

bool Mailbox::has_arrived(Arriving& letter) {
  letter.arrived = letter.arrived || transport_->done(letter.request);
  return letter.arrived;
}

// Begins to receive the next letter with this tag if there is one.
void Mailbox::begin_next(int tag) {
  const auto envelope = transport_->waiting(Transport::anyone, tag);
  if (!envelope) return;
  Arriving next{tag,
                {envelope->from, std::vector<std::byte>(envelope->bytes)},
                {},
                false,
                Wait(deadline_),
                Wait(seconds_of_dying)};
  next.request = transport_->receive(next.letter.bytes, envelope->from, tag);
  has_arrived(next);  // marks the letter if it has arrived completely, as most letters have by now
  arriving_.push_back(std::move(next));
}

// Returns the first complete letter. If a letter stops arriving, perhaps because its machine has failed, it
// delays only letters of the same sender and tag.
std::optional<Letter> Mailbox::finish(int tag) {
  for (auto next = arriving_.begin(); next != arriving_.end();) {
    const auto is_before = [&](const Arriving& other) {
      return other.tag == tag && other.letter.from == next->letter.from;
    };
    if (next->tag != tag || std::any_of(arriving_.begin(), next, is_before)) {
      ++next;
    } else if (has_arrived(*next)) {
      Letter letter = std::move(next->letter);
      arriving_.erase(next);
      return letter;
    } else {
      if (!is_lost(next->letter.from)) next->dying.progressed();
      next = next->dying.expired() || next->patience.expired() ? give_up(next) : std::next(next);
    }
  }
  return std::nullopt;
}

std::vector<Mailbox::Arriving>::iterator Mailbox::give_up(std::vector<Arriving>::iterator letter) {
  transport_->keep(letter->request, std::move(letter->letter.bytes));
  return arriving_.erase(letter);
}

std::optional<Letter> Mailbox::take(int tag, double seconds) {
  return await(std::span(&tag, 1), seconds, "a letter", &Alarm::listen);
}

std::optional<Letter> Mailbox::take_arrived(int tag) {
  begin_next(tag);
  outbox_.under_way();
  return finish(tag);
}

std::optional<Letter> Mailbox::take_from_living(std::span<const int> tags, double seconds,
                                                std::string_view what) {
  return await(tags, seconds, what, &Alarm::look);
}

void Mailbox::give_up(double seconds, std::string_view what) {
  const CallSignature at = announce(Call::receive, what, DType::uint8, 0, Transport::anyone);
  alarm_->give_up(pending(at, seconds));
}

std::vector<int> Mailbox::ranks_of(const RankLost& loss) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (std::ranges::find(loss.ranks(), number(rank)) != loss.ranks().end()) ranks.push_back(rank);
  return ranks;
}

void Mailbox::spare(const std::vector<int>& ranks) {
  for (const int rank : ranks) spared_.push_back(topology_.of(rank).number);
}

bool Mailbox::is_lost(int rank) const {
  return topology_.has_no_process(rank) ||
         std::ranges::find(spared_, topology_.of(rank).number) != spared_.end();
}

PendingCall Mailbox::pending(const CallSignature& at, double seconds) const {
  return {at, seconds, topology_.numbers(), spared_};
}

std::optional<Letter> Mailbox::await(std::span<const int> tags, double seconds, std::string_view what,
                                     Listen listen) {
  const EventSpan span(EventKind::wait, what);
  const CallSignature at = announce(Call::receive, what, DType::uint8, 0, Transport::anyone);
  const PendingCall call = pending(at, seconds);
  Wait wait(seconds);
  while (true) {
    const bool expired = wait.expired();
    if (looks_.is_time_to_look()) ((*alarm_).*listen)(call);
    for (const int tag : tags) {
      begin_next(tag);
      if (auto letter = finish(tag)) return letter;
    }
    outbox_.under_way();
    if (expired) {
      ((*alarm_).*listen)(call);
      return std::nullopt;
    }
    wait.pause();
  }
}

}  // namespace plexaura

#include "distributed/mailbox.h"

#include <fmt/format.h>
#include <utility>

#include "core/error.h"
#include "distributed/group/wait.h"

namespace plexaura {

namespace {

constexpr int pauses_between_looks = 64;
// What a process has sent may still arrive for a moment after its death.
constexpr double seconds_of_dying = 1;

}  // namespace

Mailbox::Mailbox(std::unique_ptr<Transport> transport, const Topology& topology, std::shared_ptr<Alarm> alarm,
                 double deadline_seconds)
    : transport_(std::move(transport)),
      topology_(topology),
      alarm_(std::move(alarm)),
      deadline_(deadline_seconds),
      outbox_(*transport_) {}

Posted Mailbox::post(int to, int tag, std::span<const std::byte> bytes) {
  if (to < 0 || to >= transport_->size() || to == transport_->rank() || tag < 0)
    throw UserError(
        fmt::format("rank {} cannot post a letter with tag {} to rank {} of {}: give another rank, "
                    "and a tag of at least 0",
                    transport_->rank(), tag, to, transport_->size()));
  if (is_lost(to)) return Posted::lost;
  const std::size_t under_way = outbox_.bytes_under_way(to);
  if (under_way > 0 && under_way + bytes.size() > most_bytes) return Posted::full;
  outbox_.send(bytes, to, tag);
  return Posted::sent;
}

// Nothing where the sender is lost before all of it has come, which may be with its machine.
std::optional<Letter> Mailbox::receive(const Envelope& envelope, int tag, const PendingCall& call) {
  Letter letter{envelope.from, std::vector<std::byte>(envelope.bytes)};
  Request request = transport_->receive(letter.bytes, envelope.from, tag);
  Wait dying(seconds_of_dying);
  Wait arriving(deadline_);
  try {
    while (!transport_->done(request)) {
      if (!is_lost(envelope.from)) dying.progressed();
      if (dying.expired() || arriving.expired()) {
        transport_->keep(request, std::move(letter.bytes));
        return std::nullopt;
      }
      alarm_->listen(call);
      arriving.pause();
    }
  } catch (...) {
    transport_->keep(request, std::move(letter.bytes));
    throw;
  }
  return letter;
}

std::optional<Letter> Mailbox::take(int tag, double seconds) {
  const CallSignature at = announce(Call::receive, "a letter", DType::uint8, 0, Transport::anyone);
  const PendingCall call{at, seconds, topology_.numbers()};
  Wait wait(seconds);
  for (int pauses = 1;; ++pauses) {
    if (const auto envelope = transport_->waiting(Transport::anyone, tag))
      if (auto letter = receive(*envelope, tag, call)) return letter;
    const bool expired = wait.expired();
    outbox_.under_way();
    if (expired || pauses % pauses_between_looks == 0) alarm_->listen(call);
    if (expired) return std::nullopt;
    wait.pause();
  }
}

}  // namespace plexaura

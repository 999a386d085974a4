#include "distributed/node/shm_rendezvous.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/exchange/collective.h"
#include "distributed/failure/rank_wait.h"

namespace plexaura {

// A rank's seat. A seat of zero bytes, as in new shared memory, is a valid initial state. Two signatures
// alternate, because a rank may be one meeting ahead of another rank that still reads.
struct ShmRendezvous::Seat {
  alignas(64) std::atomic<std::uint64_t> arrived;
  alignas(64) std::atomic<std::uint64_t> passed;
  alignas(64) std::atomic<std::uint64_t> beats;
  std::array<CallSignature, 2> signatures;

  const CallSignature& at(std::uint64_t meeting) const { return signatures[meeting % 2]; }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t ShmRendezvous::bytes_per_rank() { return (sizeof(Seat) + 4095) / 4096 * 4096; }

ShmRendezvous::ShmRendezvous(const SharedWindow& window, const Topology& topology, Alarm& alarm,
                             double deadline_seconds)
    : seats_(window.bases()), topology_(topology), alarm_(alarm), deadline_(deadline_seconds) {}

ShmRendezvous::Seat& ShmRendezvous::seat(int node_rank) const {
  return *reinterpret_cast<Seat*>(seats_[static_cast<std::size_t>(node_rank)]);
}

std::uint8_t ShmRendezvous::meet(CallSignature mine, double deadline_seconds) {
  mine.sequence = ++meetings_;
  Seat& own = seat(topology_.own_node_rank());
  own.signatures[meetings_ % 2] = mine;
  own.arrived.store(meetings_, std::memory_order_release);
  wait_for_all([](const Seat& s) { return s.arrived.load(std::memory_order_acquire); }, meetings_,
               {mine, deadline_seconds, topology_.numbers()});
  check_all_match();
  return seat(0).at(meetings_).pace;
}

void ShmRendezvous::barrier(const CallSignature& during) {
  seat(topology_.own_node_rank()).passed.store(++barriers_, std::memory_order_release);
  wait_for_all([](const Seat& s) { return s.passed.load(std::memory_order_acquire); }, barriers_,
               {during, deadline_, topology_.numbers()});
}

void ShmRendezvous::beat() { seat(topology_.own_node_rank()).beats.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t ShmRendezvous::beats() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i)
    sum += seat(i).beats.load(std::memory_order_relaxed);
  return sum;
}

void ShmRendezvous::wait_for_all(Counter counter, std::uint64_t value, const PendingCall& call) {
  RankWait wait(alarm_, call);
  std::uint64_t beats_seen = beats();
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i) {
    while (counter(seat(i)) < value) {
      if (const std::uint64_t seen = beats(); seen != beats_seen) {
        beats_seen = seen;
        wait.progressed();
      }
      wait.pause();
    }
  }
}

// Throws if two ranks of the node make different calls. All ranks of the node find the same mismatch, and the
// lowest of them prints the error.
void ShmRendezvous::check_all_match() {
  const std::vector<int>& ranks = topology_.own_node_ranks();
  const int first_rank = topology_.number(ranks[0]);
  const CallSignature& first = seat(0).at(meetings_);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const CallSignature& other = seat(static_cast<int>(i)).at(meetings_);
    const int other_rank = topology_.number(ranks[i]);
    if (match(first, other)) continue;
    if (first.call == Call::leave_in_error) alarm_.end_with_error_of(first_rank, exit_status(first));
    if (other.call == Call::leave_in_error) alarm_.end_with_error_of(other_rank, exit_status(other));
    const std::string text = describe_mismatch(first_rank, first, other_rank, other);
    if (topology_.own_node_rank() != 0) throw Remote<DeviceError>(first_rank, text);
    alarm_.fail(text);
  }
}

}  // namespace plexaura

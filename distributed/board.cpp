#include "distributed/board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>

#include "distributed/failure.h"
#include "distributed/wait.h"

namespace plexaura {

// A seat begins as zero bytes in fresh shared memory, which is its valid first state. Two announcements take
// turns: a rank can be at most one meeting ahead of one that still reads.
struct Board::Seat {
  alignas(64) std::atomic<std::uint64_t> arrived;
  alignas(64) std::atomic<std::uint64_t> passed;
  alignas(64) std::atomic<std::uint64_t> beats;
  std::array<Announcement, 2> announcements;

  // Used on the first seat only: the sentence with which all end.
  enum Trouble : std::uint32_t { none, claimed, told };
  std::atomic<std::uint32_t> trouble;
  std::int32_t speaker;
  std::array<char, 504> text;

  const Announcement& at(std::uint64_t meeting) const { return announcements[meeting % 2]; }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

std::size_t Board::bytes_per_rank() { return (sizeof(Seat) + 4095) / 4096 * 4096; }

Board::Board(const SharedWindow& window, const Places& places, double deadline_seconds)
    : seats_(window.bases()), places_(places), deadline_(deadline_seconds) {}

Board::Seat& Board::seat(int node_rank) const {
  return *reinterpret_cast<Seat*>(seats_[static_cast<std::size_t>(node_rank)]);
}

void Board::leave_word(Announcement mine) noexcept {
  mine.sequence = ++meetings_;
  Seat& own = seat(places_.own_node_rank());
  own.announcements[meetings_ % 2] = mine;
  own.arrived.store(meetings_, std::memory_order_release);
}

void Board::meet(Announcement mine) {
  leave_word(mine);
  mine.sequence = meetings_;
  wait_for_all([](const Seat& s) { return s.arrived.load(std::memory_order_acquire); }, meetings_, mine);
  check_all_match(mine);
}

void Board::barrier(const Announcement& during) {
  seat(places_.own_node_rank()).passed.store(++barriers_, std::memory_order_release);
  wait_for_all([](const Seat& s) { return s.passed.load(std::memory_order_acquire); }, barriers_, during);
}

void Board::beat() { seat(places_.own_node_rank()).beats.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t Board::beats() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i)
    sum += seat(i).beats.load(std::memory_order_relaxed);
  return sum;
}

void Board::wait_for_all(Counter counter, std::uint64_t value, const Announcement& mine) {
  constexpr unsigned kPausesBetweenLooks = 64;
  Wait wait(deadline_);
  std::uint64_t beats_seen = beats();
  unsigned pauses = 0;
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i) {
    while (counter(seat(i)) < value) {
      if (++pauses % kPausesBetweenLooks == 0) {
        check_trouble();
        check_alive(counter, value, mine);
        if (const std::uint64_t seen = beats(); seen != beats_seen) {
          beats_seen = seen;
          wait.progressed();
        }
        if (wait.expired()) fail(describe_missing(counter, value, mine));
      }
      wait.pause();
    }
  }
  check_trouble();
}

void Board::check_trouble() {
  const Seat& first = seat(0);
  if (first.trouble.load(std::memory_order_acquire) == Seat::none) return;
  Wait wait(1.0);  // the speaker writes a few hundred bytes
  while (first.trouble.load(std::memory_order_acquire) != Seat::told && !wait.expired()) wait.pause();
  throw_quietly(first.speaker, first.text.data());
}

void Board::check_alive(Counter counter, std::uint64_t value, const Announcement& mine) {
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i) {
    const int rank = places_.own_node_ranks()[static_cast<std::size_t>(i)];
    if (counter(seat(i)) >= value || !places_.is_dead(rank)) continue;
    fail(fmt::format("{} has died; rank {} waits for it at {}", places_.name(rank),
                     places_.own_node_ranks()[static_cast<std::size_t>(places_.own_node_rank())],
                     describe(mine)));
  }
}

void Board::check_all_match(const Announcement& mine) {
  const std::vector<int>& ranks = places_.own_node_ranks();
  const Announcement& first = seat(0).at(meetings_);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const Announcement& other = seat(static_cast<int>(i)).at(meetings_);
    if (match(first, other)) continue;
    for (const auto& [rank, said] : {std::pair{ranks[0], &first}, std::pair{ranks[i], &other}}) {
      if (said->call != Call::leave_in_error) continue;
      throw_quietly(
          rank, fmt::format("{} has left with an error of its own, which it reports", places_.name(rank)));
    }
    const std::string text = describe_mismatch(ranks[0], first, ranks[i], other);
    if (leaves(mine)) throw_quietly(ranks[0], text);  // who leaves has nobody left to report to
    fail(text);
  }
}

std::string Board::describe_missing(Counter counter, std::uint64_t value, const Announcement& mine) const {
  std::vector<int> missing;
  std::string last_seen;
  for (int i = 0; i < static_cast<int>(seats_.size()); ++i) {
    const Seat& other = seat(i);
    if (counter(other) >= value) continue;
    missing.push_back(places_.own_node_ranks()[static_cast<std::size_t>(i)]);
    const std::uint64_t arrived = other.arrived.load(std::memory_order_acquire);
    if (last_seen.empty() && arrived != 0)
      last_seen = fmt::format(" (last seen at {})", describe(other.at(arrived)));
  }
  return fmt::format("{} did not come to {} within {:.3g} s{}: stopped, stuck, or still at work elsewhere",
                     list_ranks(missing), describe(mine), deadline_, last_seen);
}

void Board::fail(const std::string& text) {
  Seat& first = seat(0);
  std::uint32_t expected = Seat::none;
  if (!first.trouble.compare_exchange_strong(expected, Seat::claimed, std::memory_order_acq_rel))
    check_trouble();
  first.speaker = places_.own_node_ranks()[static_cast<std::size_t>(places_.own_node_rank())];
  std::copy_n(text.begin(), std::min(text.size(), first.text.size() - 1), first.text.begin());
  first.trouble.store(Seat::told, std::memory_order_release);
  throw DeviceError(text);
}

}  // namespace plexaura

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"

namespace plexaura::cuda {

// Thrown if threads of one launch race for the device's memory.
struct GlobalRace : InternalError {
  GlobalRace(const std::string& what, const std::byte* address) : InternalError(what), place(address) {}
  const std::byte* place;
};

constexpr int every_thread = -1;  // stands for all threads of a block, outside of phases

// The detector for the launch that is running; null: races are not detected.
class GlobalRaces;
inline GlobalRaces* global_races = nullptr;

// Detects races: two threads of a launch use the same bytes, at least one of them writes, and nothing orders
// the two uses. It works where loops run the blocks and threads one after another. Two things order uses: the
// end of a phase of a block, and a counter, if the second thread's block is the last to arrive at it and the
// first thread's block arrived there too. Atomic uses race only with non-atomic ones. Only three readers of
// an element are remembered, so a race with a fourth one may remain undetected.
class GlobalRaces {
 public:
  GlobalRaces() { global_races = this; }
  ~GlobalRaces() { global_races = nullptr; }
  GlobalRaces(const GlobalRaces&) = delete;
  GlobalRaces& operator=(const GlobalRaces&) = delete;

  void begin_block(std::int64_t index) {
    blocks_.push_back({index, ++time_});
    phase_begin_ = time_;
    seen_.clear();
    thread_ = every_thread;
  }
  void go_to(int thread) { thread_ = thread; }
  void end_phase() { phase_begin_ = ++time_; }

  void read(const std::byte* place, std::size_t bytes) {
    each_cell(place, bytes, [&](Cell& cell) {
      check(cell.written, place, thread_);
      keep_read(cell, thread_);
    });
  }
  void write(const std::byte* place, std::size_t bytes) {
    if (thread_ == every_thread) throw_race({time_, thread_}, place, thread_);
    each_cell(place, bytes, [&](Cell& cell) { keep_write(cell, place, thread_); });
  }
  void use_atomically(const std::byte* place, std::size_t bytes) {
    each_cell(place, bytes, [&](Cell& cell) {
      keep_write(cell, place, atomically);
      keep_read(cell, atomically);
    });
  }

  // Records that the thread arrives at a counter, which it has used atomically before.
  void arrive(const std::byte* counter, bool is_last) {
    std::vector<Arrival>& arrived = arrived_[counter];
    arrived.push_back({blocks_.back().index, phase_begin_, {time_++, thread_}});
    for (const auto& [block, seen] : seen_)
      if (knows(seen)) arrived.push_back(seen.arrival);
    if (!is_last) return;
    for (const Arrival& arrival : arrived) seen_.insert({arrival.block, {arrival, phase_begin_, thread_}});
    arrived.clear();
  }

  // Calls f(place, bytes, written) for all bytes that were used, perhaps in many pieces. `written` is true
  // for writes and false for reads.
  template <class F>
  void each_use(const F& f) const {
    for (const auto& [number, chunk] : chunks_)
      for (std::size_t i = 0; i < chunk.cells.size(); ++i) {
        const auto* place = reinterpret_cast<const std::byte*>(number * chunk_bytes + i * chunk.cell_bytes);
        if (chunk.cells[i].written.time > 0) f(place, chunk.cell_bytes, true);
        if (chunk.cells[i].read.time > 0) f(place, chunk.cell_bytes, false);
      }
  }

 private:
  static constexpr int atomically = -2;  // stands for the thread's number in atomic uses
  static constexpr std::size_t chunk_bytes = 256;

  // A use of an element by a thread. Time increases with each block, phase and arrival.
  struct Use {
    std::uint32_t time = 0;  // 0: there was no use
    int thread = 0;
  };
  struct Arrival {
    std::int64_t block;
    std::uint32_t phase_begin;
    Use use;
  };
  // An arrival of another block after which this block's work is ordered: for the arriving thread at once,
  // and for the other threads from the next phase on.
  struct Seen {
    Arrival arrival;
    std::uint32_t phase_begin;
    int thread;
  };
  // The latest uses of an element.
  struct Cell {
    Use written;
    Use read;
    Use read_near;  // last read by another thread of the same block
    Use read_far;   // last read by another block
  };
  struct Chunk {
    explicit Chunk(std::size_t element) : cell_bytes(element), cells(chunk_bytes / element) {}
    std::size_t cell_bytes;
    std::vector<Cell> cells;
  };
  struct Recent {
    std::uintptr_t number = 0;
    Chunk* chunk = nullptr;
  };
  struct BlockBegin {
    std::int64_t index;
    std::uint32_t time;
  };

  void keep_write(Cell& cell, const std::byte* place, int thread) const {
    for (const Use& use : {cell.written, cell.read, cell.read_near, cell.read_far}) check(use, place, thread);
    cell.written = {time_, thread};
  }

  void keep_read(Cell& cell, int thread) const {
    if (!is_in_block(cell.read)) {
      cell.read_far = cell.read;
      cell.read_near = {};
    } else if (cell.read.thread != thread) {
      cell.read_near = cell.read;
    }
    cell.read = {time_, thread};
  }

  bool is_in_block(const Use& use) const { return use.time >= blocks_.back().time; }

  void check(const Use& use, const std::byte* place, int thread) const {
    if (use.time == 0 || (use.thread == atomically && thread == atomically)) return;
    if (is_in_block(use) ? use.time >= phase_begin_ && use.thread != thread : !comes_before(use))
      throw_race(use, place, thread);
  }

  // True if the use, by another block, precedes this thread's work.
  bool comes_before(const Use& use) const {
    const auto [begin, end] = seen_.equal_range(block_of(use));
    return std::any_of(begin, end, [&](const auto& entry) {
      const Arrival& arrival = entry.second.arrival;
      const bool precedes = use.time < arrival.phase_begin ||
                            (use.thread == arrival.use.thread && use.time <= arrival.use.time);
      return precedes && knows(entry.second);
    });
  }
  bool knows(const Seen& seen) const { return seen.phase_begin < phase_begin_ || seen.thread == thread_; }

  std::int64_t block_of(const Use& use) const {
    return std::prev(std::ranges::upper_bound(blocks_, use.time, {}, &BlockBegin::time))->index;
  }

  [[noreturn]] void throw_race(const Use& first, const std::byte* place, int thread) const {
    throw GlobalRace(text(first) + " and " + text({time_, thread}) + " race for memory of the device", place);
  }
  std::string text(const Use& use) const {
    const std::string block = " of block " + std::to_string(block_of(use));
    if (use.thread == every_thread) return "all threads" + block;
    if (use.thread == atomically) return "an atomic use" + block;
    return "thread " + std::to_string(use.thread) + block;
  }

  // Calls f(cell) for the cells of these bytes. A chunk has one cell for each element. If elements differ in
  // size, cells have the smallest size.
  template <class F>
  void each_cell(const std::byte* place, std::size_t bytes, const F& f) {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    Chunk& chunk = chunk_of(address / chunk_bytes, bytes);
    const std::size_t first = address % chunk_bytes / chunk.cell_bytes;
    const std::size_t end = first + bytes / chunk.cell_bytes;
    for (std::size_t i = first; i < end; ++i) f(chunk.cells[i]);
  }

  Chunk& chunk_of(std::uintptr_t number, std::size_t element) {
    constexpr std::uintptr_t mixing = 0x9e3779b97f4a7c15;
    Recent& recent = recent_[number * mixing >> 58];
    if (recent.chunk == nullptr || recent.number != number)
      recent = {number, &chunks_.try_emplace(number, element).first->second};
    if (recent.chunk->cell_bytes > element) split(*recent.chunk, element);
    return *recent.chunk;
  }

  static void split(Chunk& chunk, std::size_t element) {
    Chunk parts(element);
    for (std::size_t i = 0; i < parts.cells.size(); ++i)
      parts.cells[i] = chunk.cells[i * element / chunk.cell_bytes];
    chunk = std::move(parts);
  }

  std::uint32_t time_ = 0;
  std::uint32_t phase_begin_ = 0;
  int thread_ = every_thread;
  std::vector<BlockBegin> blocks_;  // all blocks that have begun so far
  // Arrivals that are ordered before the running block, by their block.
  std::unordered_multimap<std::int64_t, Seen> seen_;
  std::unordered_map<const std::byte*, std::vector<Arrival>> arrived_;
  std::unordered_map<std::uintptr_t, Chunk> chunks_;
  std::array<Recent, 64> recent_{};
};

}  // namespace plexaura::cuda

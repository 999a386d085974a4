// Tests the races that backends/cuda/kernels/global_races.h finds in a kernel. Each test makes one mistake.

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "backends/cuda/kernels/block.h"

namespace plexaura::testing::cuda_global_races_test {

namespace {

using cuda::arrive;
using cuda::Block;
using cuda::claim;
using cuda::Global;
using cuda::threads;

constexpr std::int64_t count = 3L * threads;

template <class T>
struct Values {
  std::vector<T> values = std::vector<T>(count);
  Global<T> global{reinterpret_cast<std::byte*>(values.data()), count};

  auto operator[](std::int64_t i) const { return global[i]; }
  T& shared(std::int64_t i) const { return global.shared(i); }
};

// Returns the race that is found in a launch with this number of blocks.
template <class Body>
std::string found(int blocks, const Body& body) {
  const cuda::GlobalRaces races;
  try {
    for (int index = 0; index < blocks; ++index) {
      Block block(index, blocks);
      body(block);
    }
  } catch (const cuda::GlobalRace& race) {
    const std::string words = race.what();
    return words.substr(0, words.find(" race for memory"));
  }
  return "";
}

std::string of(int thread, int block) {
  return "thread " + std::to_string(thread) + " of block " + std::to_string(block);
}

}  // namespace

TEST_CASE(
    "threads that use elements of their own, or read the same ones, do not race for memory of the device") {
  const Values<float> values;
  const Values<float> read;
  CHECK(found(3, [&](Block& block) {
          const float all = read[1];
          block.each_item(count, [&](std::int64_t i) { values[i] = values[i] + read[i] + read[0] + all; });
          block.each_item(count, [&](std::int64_t i) { values[i] = values[i] + 1; });
        }).empty());
}

TEST_CASE("threads that a phase parts do not race for memory of the device, and race without it") {
  const Values<float> values;
  const auto by_neighbours = [&](Block& block, bool parted) {
    block.each_thread([&](int thread) {
      values[thread] = 1;
      if (!parted) static_cast<void>(values[(thread + 1) % threads] + 0);
    });
    block.each_thread([&](int thread) { static_cast<void>(values[(thread + 1) % threads] + 0); });
    block.each_thread([&](int thread) { values[thread] = 2; });
  };
  CHECK(found(1, [&](Block& block) { by_neighbours(block, true); }).empty());
  CHECK(found(1, [&](Block& block) { by_neighbours(block, false); }) == of(0, 0) + " and " + of(1, 0));
  // each_item() does not end a phase.
  CHECK(found(1, [&](Block& block) {
          block.each_item(threads, [&](std::int64_t i) { values[i] = 1; });
          block.each_item(1, [&](std::int64_t) { static_cast<void>(values[7] + 0); });
        }) == of(7, 0) + " and " + of(0, 0));
}

TEST_CASE("blocks that write one element race for memory of the device") {
  const Values<float> values;
  CHECK(found(2, [&](Block& block) {
          block.each_thread([&](int thread) {
            if (thread == 5) values[0] = 1;
          });
        }) == of(5, 0) + " and " + of(5, 1));
}

TEST_CASE("a sum that is added up without atomic uses races for memory of the device") {
  const Values<float> values;
  CHECK(found(1, [&](Block& block) {
          block.each_item(threads, [&](std::int64_t i) { values[0] = values[0] + static_cast<float>(i); });
        }) == of(0, 0) + " and " + of(1, 0));
}

TEST_CASE("who writes what others have read races for memory of the device with any of them") {
  const Values<float> values;
  const auto writes_behind = [&](int blocks, int writer, std::vector<int> readers) {
    return found(blocks, [&](Block& block) {
      block.each_thread([&](int thread) {
        for (const int reader : readers)
          if (thread == reader) static_cast<void>(values[0] + 0);
        if (block.index() == blocks - 1 && thread == writer) values[0] = 1;
      });
    });
  };
  CHECK(writes_behind(1, 9, {3}) == of(3, 0) + " and " + of(9, 0));
  CHECK(writes_behind(1, 9, {3, 9}) == of(3, 0) + " and " + of(9, 0));
  CHECK(writes_behind(1, 9, {3, 4, 9}) == of(4, 0) + " and " + of(9, 0));
  CHECK(writes_behind(1, 9, {9}).empty());
  CHECK(writes_behind(2, 9, {9}) == of(9, 0) + " and " + of(9, 1));
}

TEST_CASE("what stands outside of phases is done by all threads, which race if it writes") {
  const Values<float> values;
  CHECK(found(1, [&](Block&) { values[0] = 1; }) == "all threads of block 0 and all threads of block 0");
  CHECK(found(1, [&](Block& block) {
          static_cast<void>(values[0] + 0);
          block.each_item(1, [&](std::int64_t) { values[0] = 1; });
        }) == "all threads of block 0 and " + of(0, 0));
  CHECK(found(1, [&](Block& block) {
          block.each_item(1, [&](std::int64_t) { values[0] = 1; });
          static_cast<void>(values[0] + 0);
        }) == of(0, 0) + " and all threads of block 0");
}

TEST_CASE("atomic uses race for memory of the device with others alone") {
  const Values<std::uint32_t> flags;
  const auto raise = [&](int) { claim(flags.shared(0)); };
  CHECK(found(2, [&](Block& block) { block.each_thread(raise); }).empty());
  CHECK(found(2, [&](Block& block) {
          block.each_thread(raise);
          block.each_thread([&](int thread) {
            if (block.index() == 1 && thread == 0) flags[0] = 0;
          });
        }) == "an atomic use of block 0 and " + of(0, 1));
}

// Each block writes an element, and the last block to arrive adds them up.
namespace {

struct Faults {
  bool arrives = true;
  bool is_last = true;        // the last block adds up
  bool written_late = false;  // after the arrival
  int writer = 0;             // the thread that writes
  bool in_one_phase = false;  // writes, arrives and adds up in one phase
  int reader = 0;
};

std::string found_in_sum(const Faults& faults) {
  const Values<float> values;
  const Values<std::uint32_t> counters;
  bool last = false;
  const auto write = [&](Block& block, int thread) {
    if (thread == faults.writer) values[block.index()] = 1;
  };
  const auto arrive_once = [&](int thread) {
    if (thread > 0 || !faults.arrives) return;
    last = arrive(counters.shared(0), 3);
  };
  const auto add_up = [&](Block& block, int thread) {
    if (thread != faults.reader || (faults.is_last ? block.index() != 2 : block.index() != 1)) return;
    static_cast<void>(values[0] + 0);
  };
  return found(3, [&](Block& block) {
    if (!faults.in_one_phase) block.each_thread([&](int thread) { write(block, thread); });
    block.each_thread([&](int thread) {
      if (faults.in_one_phase && !faults.written_late) write(block, thread);
      arrive_once(thread);
      if (faults.written_late) write(block, thread);
      if (faults.in_one_phase) add_up(block, thread);
    });
    block.each_thread([&](int thread) {
      if (!faults.in_one_phase) add_up(block, thread);
    });
  });
}

}  // namespace

TEST_CASE(
    "the block that arrives last sees what the others have written, if it is the last and they have "
    "arrived") {
  CHECK(found_in_sum({}).empty());
  CHECK(found_in_sum({.in_one_phase = true}).empty());
  CHECK(found_in_sum({.writer = 4}).empty());
  CHECK(found_in_sum({.reader = 4}).empty());
  const std::string first = of(0, 0) + " and ";
  CHECK(found_in_sum({.arrives = false}) == first + of(0, 2));
  CHECK(found_in_sum({.is_last = false}) == first + of(0, 1));
  CHECK(found_in_sum({.written_late = true}) == first + of(0, 2));
  CHECK(found_in_sum({.writer = 4, .in_one_phase = true}) == of(4, 0) + " and " + of(0, 2));
  CHECK(found_in_sum({.in_one_phase = true, .reader = 4}) == first + of(4, 2));
}

TEST_CASE("who arrives hands on what it has seen at another counter") {
  const Values<float> values;
  const Values<std::uint32_t> counters;
  const auto with = [&](bool hands_on) {
    return found(3, [&](Block& block) {
      block.each_thread([&](int thread) {
        if (thread > 0) return;
        if (block.index() == 0) values[0] = 1;
        if (block.index() == 0 || (block.index() == 1 && hands_on)) arrive(counters.shared(0), 2);
        if (block.index() > 0) arrive(counters.shared(1), 2);
        if (block.index() == 2) static_cast<void>(values[0] + 0);
      });
    });
  };
  CHECK(with(true).empty());
  CHECK(with(false) == of(0, 0) + " and " + of(0, 2));
}

TEST_CASE("elements of other sizes in the same memory race for it, and neighbours do not") {
  const Values<float> values;
  const auto uses = [&](std::int64_t half, bool narrow_first) {
    return found(1, [&](Block& block) {
      block.each_thread([&](int thread) {
        if (thread == (narrow_first ? 0 : 1)) static_cast<void>(values.global.as<std::uint16_t>(half) + 0);
        if (thread == (narrow_first ? 1 : 0)) values[1] = 1;
      });
    });
  };
  for (const bool narrow_first : {false, true}) {
    CHECK(uses(1, narrow_first).empty());
    for (const std::int64_t half : {2, 3}) CHECK(uses(half, narrow_first) == of(0, 0) + " and " + of(1, 0));
    CHECK(uses(4, narrow_first).empty());
  }
}

}  // namespace plexaura::testing::cuda_global_races_test

// Tests the mistakes that backends/cuda/kernels/block_of_host.h finds in a kernel. Each test makes one
// mistake.

#include <doctest/doctest.h>
#include <vector>

#include "backends/cuda/kernels/block.h"
#include "core/base/error.h"

// The kernels below use memory of the host, of which one piece may be freed.
namespace plexaura::cuda {

namespace {
const std::byte* freed_memory = nullptr;
std::uint64_t frees = 0;
}  // namespace

std::byte* place_of(const std::byte* address, std::size_t) {
  if (address == freed_memory) throw InternalError("freed");
  return const_cast<std::byte*>(address);
}
std::uint64_t times_freed() { return frees; }
void throw_out_of_bounds(std::int64_t, std::int64_t) { throw InternalError("out of bounds"); }
void throw_unwritten(std::int64_t) { throw InternalError("unwritten"); }
void throw_race(std::int64_t, int, int) { throw InternalError("race"); }

namespace {

void free_again(const std::byte* address) {
  freed_memory = address;
  ++frees;
}

}  // namespace

}  // namespace plexaura::cuda

namespace plexaura::testing::cuda_block_test {

namespace {

using cuda::Block;
using cuda::Global;
using cuda::SharedArray;
using cuda::threads;

struct Memory {
  std::vector<float> values = std::vector<float>(10);
  std::byte* address = reinterpret_cast<std::byte*>(values.data());
  Global<float> global{address, 10};
};

template <class Body>
void run(const Body& body) {
  for (std::int64_t index = 0; index < 2; ++index) {
    Block block(index, 2);
    body(block);
  }
}

template <class Body>
void check_finds(const char* what, const Body& body) {
  CHECK_THROWS_WITH_AS(run(body), what, InternalError);
}

}  // namespace

TEST_CASE("a kernel for CUDA that makes no mistake computes on the host") {
  const Memory memory;
  run([&](Block& block) {
    PLEXAURA_SHARED(block, float, sums, threads);
    block.each_thread([&](int thread) { sums[thread] = static_cast<float>(thread); });
    block.each_thread([&](int thread) {
      if (thread == 0) sums[0] = sums[0] + sums[threads - 1];
    });
    block.each_item(10, [&](std::int64_t i) { memory.global[i] = sums[0]; });
  });
  CHECK(memory.values == std::vector<float>(10, threads - 1));
}

TEST_CASE("the last of the threads of a kernel for CUDA that arrive at a counter leaves it as it was") {
  std::uint32_t counter = 0;
  for (int launch = 0; launch < 2; ++launch) {
    std::vector<bool> last;
    for (int block = 0; block < 3; ++block) last.push_back(cuda::arrive(counter, 3));
    CHECK(last == std::vector<bool>{false, false, true});
    CHECK(counter == 0);
  }
}

TEST_CASE("the bytes of what a kernel for CUDA is given are those of its values, each once") {
  const Memory memory;
  struct Inner {
    Global<const float> in;
    Global<const double> none;
  };
  struct Kernel {
    Inner inner;
    Global<float> out[2];
  };
  const Kernel kernel{{{memory.address, 10}, {}}, {{memory.address, 5}, {memory.address, 1}}};
  CHECK(cuda::bytes_given_to(kernel) == 4 * (10 + 5 + 1));
}

TEST_CASE("an index out of bounds is found in a kernel for CUDA") {
  const Memory memory;
  check_finds("out of bounds",
              [&](Block& block) { block.each_item(11, [&](std::int64_t i) { memory.global[i] = 1; }); });
  check_finds("out of bounds",
              [&](Block& block) { block.each_item(10, [&](std::int64_t i) { memory.global[i - 1] = 1; }); });
  for (const int shift : {-1, 1})
    check_finds("out of bounds", [&](Block& block) {
      PLEXAURA_SHARED(block, float, shared, threads);
      block.each_thread([&](int thread) { shared[thread + shift] = 1; });
    });
}

TEST_CASE("memory that is freed is found in a kernel for CUDA, also between two of its elements") {
  const Memory memory;
  memory.global[0] = 1;
  cuda::free_again(memory.address);
  CHECK_THROWS_WITH_AS(memory.global[0] = 1, "freed", InternalError);
  cuda::free_again(nullptr);
  CHECK_NOTHROW(memory.global[0] = 1);
}

TEST_CASE("shared memory that nobody has written is found in a kernel for CUDA") {
  check_finds("unwritten", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, threads);
    block.each_thread([&](int thread) {
      if (thread > 0) shared[thread] = 1;
    });
    block.each_thread([&](int thread) { static_cast<void>(static_cast<float>(shared[thread])); });
  });
}

TEST_CASE("threads that race for shared memory within a phase are found in a kernel for CUDA") {
  // Two threads write the same element.
  check_finds("race", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, threads);
    block.each_thread([&](int thread) { shared[thread / 2] = 1; });
  });
  // All threads write it outside of phases.
  check_finds("race", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, threads);
    block.each_thread([&](int thread) { shared[thread] = 1; });
    shared[0] = 1;
  });
  check_finds("race", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, 1);
    shared[0] = 1;
  });
  // A thread reads an element that another thread writes, before or after.
  for (const int shift : {1, threads - 1})
    check_finds("race", [&](Block& block) {
      PLEXAURA_SHARED(block, float, shared, threads);
      block.each_thread([&](int thread) { shared[thread] = 1; });
      block.each_thread([&](int thread) { shared[thread] = shared[(thread + shift) % threads]; });
    });
  // A sum by halves that lacks a phase for each step.
  check_finds("race", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, threads);
    block.each_thread([&](int thread) { shared[thread] = 1; });
    block.each_thread([&](int thread) {
      for (int half = threads / 2; half > 0; half /= 2)
        if (thread < half) shared[thread] += shared[thread + half];
    });
  });
  // Several threads read an element, and one of them writes it.
  check_finds("race", [](Block& block) {
    PLEXAURA_SHARED(block, float, shared, threads);
    block.each_thread([&](int thread) { shared[thread] = 1; });
    block.each_thread([&](int thread) {
      const float first = shared[0];
      if (thread == threads - 1) shared[0] = first + 1;
    });
  });
}

TEST_CASE("several elements are used at once where their address allows it") {
  const Memory memory;
  run([&](Block& block) {
    block.each_item(1, [&](std::int64_t) {
      memory.global.set_several(0, cuda::Several<float, 4>{{1, 2, 3, 4}});
      CHECK(memory.global.several<4>(0)[3] == 4);
    });
  });
  check_finds("a kernel uses 16 bytes at once, from element 1 on, whose address is not a multiple of that",
              [&](Block& block) { block.each_item(1, [&](std::int64_t) { memory.global.several<4>(1); }); });
  check_finds("out of bounds",
              [&](Block& block) { block.each_item(1, [&](std::int64_t) { memory.global.several<4>(8); }); });
}

}  // namespace plexaura::testing::cuda_block_test

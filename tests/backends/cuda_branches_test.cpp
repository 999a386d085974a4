#include <doctest/doctest.h>

#include "backends/cuda/engine/branches.h"

namespace plexaura::testing::cuda_branches_test {

namespace {

using cuda::Turn;
using cuda::Use;
using cuda::Work;

const std::byte memory[64]{};

Use reads(int begin, int end) { return {memory + begin, memory + end, false}; }
Use writes(int begin, int end) { return {memory + begin, memory + end, true}; }

const Work divides{.divides = true};

// Places the works after one that divides, like at the beginning of a recording.
std::vector<Turn> placed(std::vector<Work> works) {
  works.insert(works.begin(), divides);
  return cuda::place_on_branches(works);
}

// Checks if a second kernel runs beside the first one or after it.
void check_beside(const Use& first, const Use& second, bool beside) {
  const std::vector<Turn> turns = placed({{{first}, 1}, {{second}, 1}});
  CHECK(turns[1] == Turn{0, {}, false});
  CHECK(turns[2] == (beside ? Turn{1, 0, false} : Turn{0, {}, false}));
}

}  // namespace

TEST_CASE("kernels run side by side unless they use the same bytes, and one of them writes these") {
  check_beside(reads(0, 8), reads(0, 8), true);
  check_beside(writes(0, 8), reads(4, 12), false);
  check_beside(reads(4, 12), writes(0, 8), false);
  check_beside(writes(0, 8), writes(7, 9), false);
  check_beside(writes(2, 3), reads(0, 8), false);
  check_beside(writes(0, 8), reads(8, 16), true);
  check_beside(reads(8, 16), writes(0, 8), true);
}

TEST_CASE("the gradients of weights run beside those of images") {
  // The gradients of images are at 0 to 8, 8 to 16 and 16 to 24, those of weights at 32, 40 and 48.
  const std::vector<Turn> turns = placed({{{writes(0, 8)}, 1},
                                          {{reads(0, 8), writes(8, 16)}, 2},
                                          {{reads(0, 8), writes(32, 40)}, 2},
                                          {{reads(8, 16), writes(16, 24)}, 2},
                                          {{reads(8, 16), writes(40, 48)}, 2},
                                          {{reads(16, 24), writes(48, 56)}, 2},
                                          divides});
  CHECK(turns == std::vector<Turn>{{0, {}, false},
                                   {0, {}, true},
                                   {0, {}, true},
                                   {1, 1, false},
                                   {0, {}, false},
                                   {1, 2, true},
                                   {0, {}, false},
                                   {0, 5, false}});
}

TEST_CASE(
    "a kernel waits for the last one of the other branch that it needs, and a branch only once for each") {
  const std::vector<Turn> turns = placed({{{writes(8, 16)}, 1},
                                          {{writes(0, 8)}, 4},
                                          {{reads(8, 16), writes(16, 24)}, 1},
                                          {{reads(0, 8), reads(16, 24), writes(24, 32)}, 1},
                                          {{reads(0, 8), reads(24, 32), writes(32, 40)}, 1}});
  CHECK(turns ==
        std::vector<Turn>{
            {0, {}, true}, {0, {}, false}, {1, 0, true}, {0, {}, false}, {0, 2, false}, {0, {}, false}});
}

TEST_CASE("memory that is used again waits for the kernel of the other branch that reads it") {
  const std::vector<Turn> turns = placed({{{writes(0, 8)}, 1},
                                          {{reads(8, 16), writes(40, 48)}, 5},
                                          {{reads(0, 8), writes(16, 24)}, 1},
                                          {{reads(16, 24), writes(8, 16)}, 1}});
  CHECK(turns[2] == Turn{1, 0, true});
  CHECK(turns[4] == Turn{0, 2, false});
}

TEST_CASE("what divides waits for all that came before it, and all behind it wait for that") {
  const std::vector<Turn> turns = placed(
      {{{writes(0, 8)}, 2}, {{writes(8, 16)}, 1}, divides, {{writes(16, 24)}, 1}, {{writes(24, 32)}, 1}});
  CHECK(turns ==
        std::vector<Turn>{
            {0, {}, true}, {0, {}, false}, {1, 0, true}, {0, 2, true}, {0, {}, false}, {1, 3, false}});
}

}  // namespace plexaura::testing::cuda_branches_test

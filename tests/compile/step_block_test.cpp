#include "core/compile/step_block.h"

#include <cstring>
#include <doctest/doctest.h>
#include <set>

namespace plexaura::testing::step_block_test {

TEST_CASE("every scalar lies once in each dtype, inside the block") {
  std::set<std::size_t> places;
  for (int i = 0; i < static_cast<int>(StepScalar::random); ++i)
    for (const DType dtype : {DType::float32, DType::float64}) {
      const std::size_t offset = step_block_offset(static_cast<StepScalar>(i), dtype);
      CHECK(places.insert(offset).second);
      CHECK(offset % size_of(dtype) == 0);
      CHECK(offset + size_of(dtype) <= step_block_offset(StepScalar::random, DType::int64));
    }
  CHECK(step_block_offset(StepScalar::random, DType::int64) + 24 <= step_block_bytes);
}

TEST_CASE("what is written is read at its place") {
  StepBlock block{.gradient_seed = 0.5,
                  .share = 0.25,
                  .samples = 3,
                  .learning_rate = 0.125,
                  .step = 7,
                  .stop = 1,
                  .failed = 0,
                  .loss_scale = 1024};
  block.seed = -5;
  block.first_sample = 1LL << 40;
  std::byte memory[step_block_bytes] = {};
  write_step_block(block, memory);
  const auto wide = [&](StepScalar scalar) {
    double value = 0;
    std::memcpy(&value, memory + step_block_offset(scalar, DType::float64), sizeof value);
    return value;
  };
  const auto narrow = [&](StepScalar scalar) {
    float value = 0;
    std::memcpy(&value, memory + step_block_offset(scalar, DType::float32), sizeof value);
    return value;
  };
  CHECK(wide(StepScalar::gradient_seed) == 0.5);
  CHECK(narrow(StepScalar::share) == 0.25F);
  CHECK(wide(StepScalar::samples) == 3);
  CHECK(narrow(StepScalar::learning_rate) == 0.125F);
  CHECK(wide(StepScalar::step) == 7);
  CHECK(narrow(StepScalar::stop) == 1);
  CHECK(wide(StepScalar::loss_scale) == 1024);
  CHECK(narrow(StepScalar::loss_scale) == 1024);
  std::int64_t random[3];
  std::memcpy(random, memory + step_block_offset(StepScalar::random, DType::int64), sizeof random);
  CHECK(random[0] == -5);
  CHECK(random[1] == 7);
  CHECK(random[2] == 1LL << 40);
}

}  // namespace plexaura::testing::step_block_test

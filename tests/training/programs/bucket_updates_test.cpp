#include "training/programs/bucket_updates.h"

#include <doctest/doctest.h>

#include "tests/support/backend.h"

namespace plexaura::testing::bucket_updates_test {

TEST_CASE("bucket updates: late, but for what needs all buckets") {
  const StrategyParts parts{.updates_late = true};
  Program program;
  program.graph = std::make_unique<const Graph>();
  const ArenaTypes types;
  const auto why = [&](const StrategyParts& declared, const OptimizerSpec& optimizer, const ArenaTypes& of,
                       bool watch) { return why_not_late(declared, optimizer, of, watch, program); };
  CHECK(why(parts, {}, types, false).empty());
  CHECK(why(parts, {}, ArenaTypes::mixed(DType::bfloat16), false).empty());
  CHECK(why(parts, {.max_gradient_norm = 1}, types, false) ==
        "training.optimizer.max_gradient_norm limits the norm of all gradients");
  CHECK(why(parts, {}, ArenaTypes::mixed(DType::float16), false) ==
        "a step with training.precision float16 is skipped whole");
  CHECK(why(parts, {}, types, true) == "training.watch looks at each update");
  CHECK(why_not_late(parts, {}, types, false, program, true) ==
        "the loss is divided by the sum of the weights of all samples of a step");
  StrategyParts more = parts;
  more.agrees = true;
  CHECK(why(more, {}, types, false) == "ranks may be outlived, which agree on each step");
  more = parts;
  WeightExchange weights;
  more.weights = &weights;
  CHECK(why(more, {}, types, false) ==
        "ranks on different kinds of processors take the weights of rank 0 after an update");
}

TEST_CASE("bucket updates: a program for each bucket, and none where nothing is to be updated") {
  Placement placement;
  for (const char* name : {"a", "b"})
    placement.append(name, {DType::float32, {3}}, ParameterRole::trainable, Layout::row_major(1));
  const auto count = [&] {
    const std::vector<Bucket> buckets = make_buckets(placement, 1);
    std::vector<bool> has_program;
    for (const auto& program :
         compile_bucket_updates({.momentum = 0.9}, placement, buckets, {}, test_backend(), nullptr))
      has_program.push_back(program != nullptr);
    return has_program;
  };
  CHECK(count() == std::vector<bool>{true, true, false});
  placement.append("running", {DType::float32, {3}}, ParameterRole::buffer, Layout::row_major(1));
  CHECK(count() == std::vector<bool>{true, true, true});
}

}  // namespace plexaura::testing::bucket_updates_test

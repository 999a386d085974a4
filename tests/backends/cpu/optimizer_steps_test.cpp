#include "core/ops/optimizer_steps.h"

#include <doctest/doctest.h>

#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::optimizer_steps_test {

namespace {

constexpr double bound = 1e-6;  // a handful of roundings
constexpr std::int64_t count = 1000;
const std::vector<StepSegment> segments{{0, 300, 0.01}, {300, 700, 0}};

}  // namespace

TEST_CASE("steps of SGD agree with the portable kernels in double") {
  for (const SgdOptions& options : {SgdOptions{.momentum = 0, .nesterov = false, .segments = {}},
                                    SgdOptions{.momentum = 0.9, .nesterov = false, .segments = segments},
                                    SgdOptions{.momentum = 0.9, .nesterov = true, .segments = {}}})
    for (const bool scaled : {false, true}) {
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto vector = [&](const char* name) { return graph.input(name, {dtype, {count}}); };
            const Node momentum = options.momentum != 0 ? vector("momentum") : Node();
            const SgdResult step =
                sgd_step(vector("value"), vector("grad"), momentum, graph.input("rate", {DType::float32, {}}),
                         options, scaled ? graph.input("scale", {dtype, {}}) : Node());
            return momentum.is_empty() ? std::vector<Node>{step.value}
                                       : std::vector<Node>{step.value, step.momentum};
          },
          {.low = 0.5, .high = 2});
      CHECK(result.uses("fast"));
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("steps of Adam and AdamW agree with the portable kernels in double") {
  for (const bool decoupled : {false, true})
    for (const bool scaled : {false, true}) {
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto vector = [&](const char* name) { return graph.input(name, {dtype, {count}}); };
            const AdamResult step = adam_step(vector("value"), vector("grad"), vector("mean"),
                                              vector("square"), graph.input("rate", {DType::float32, {}}),
                                              graph.input("step", {DType::float32, {}}),
                                              {.decoupled = decoupled, .segments = segments},
                                              scaled ? graph.input("scale", {dtype, {}}) : Node());
            return {step.value, step.mean, step.square};
          },
          {.low = 0.5, .high = 2});
      CHECK(result.uses("fast"));
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("steps of RMSProp and Adagrad agree with the portable kernels in double") {
  for (const bool centered : {false, true})
    for (const double momentum : {0.0, 0.9})
      for (const bool scaled : {false, true}) {
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const auto vector = [&](const char* name) { return graph.input(name, {dtype, {count}}); };
              const RmsState state{.square = vector("square"),
                                   .mean = centered ? vector("mean") : Node(),
                                   .momentum = momentum != 0 ? vector("momentum") : Node()};
              const RmsResult step =
                  rms_step(vector("value"), vector("grad"), state, graph.input("rate", {DType::float32, {}}),
                           {.kept = 0.5,
                            .added = 0.5,
                            .initial = 4,
                            .momentum = momentum,
                            .centered = centered,
                            .segments = segments},
                           scaled ? graph.input("scale", {dtype, {}}) : Node());
              std::vector<Node> results{step.value, step.state.square};
              if (centered) results.push_back(step.state.mean);
              if (momentum != 0) results.push_back(step.state.momentum);
              return results;
            },
            {.low = 0.5, .high = 2});
        CHECK(result.uses("fast"));
        CHECK(result.worst() < bound);
      }
}

}  // namespace plexaura::testing::optimizer_steps_test

// Ranks whose graphs or options differ end with an error that names the difference, before they exchange
// anything. This includes differences of the graph that neither parameters nor their values show.

#include <doctest/doctest.h>
#include <functional>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "distributed/communicator/handshake.h"
#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::agreement_test {

namespace {

const TensorType weight{DType::float32, {4, 3}};
const TensorType bias{DType::float32, {3}};

// The settings that one rank may change.
struct Way {
  double dropped = 0.2;
  bool relu = false;
  TrainerOptions options = {.batch_size = 7};
};

LossOutputs model(const ModelInputs& inputs, const Way& way) {
  Graph& graph = inputs.graph();
  const Node x = dropout(inputs["samples"], {.p = way.dropped});
  const Node outputs = matmul(way.relu ? relu(x) : tanh(x), graph.parameter("weight", weight));
  return {softmax_cross_entropy(outputs + graph.parameter("bias", bias), inputs["labels"])};
}

// Returns the error with which three ranks end if `change` is made on rank 1 only, or "" if there is none.
std::string verdict(const std::function<void(Way&)>& change) {
  return user_error([&] {
    ThreadRanks(3).run([&](Collective& ranks) {
      Way way;
      if (ranks.rank() == 1) change(way);
      const auto backend = open_backend(test_backend().info().name);
      ParameterStore store({{"weight", weight, ParameterRole::trainable, Initialiser::he_normal()},
                            {"bias", bias, ParameterRole::trainable, Initialiser::zeros()}});
      const auto data = std::make_shared<const CountingRows>(22, 4);
      SummingStrategy strategy(ranks);
      const Trainer trainer({[&](const ModelInputs& inputs) { return model(inputs, way); }, store, *backend,
                             data, data, &ranks, &strategy},
                            way.options);
      check_agreement(ranks, trainer.facts());
    });
  });
}

}  // namespace

TEST_CASE("ranks with other shares of a batch agree") {
  CHECK(verdict([](Way&) {}).empty());
}

TEST_CASE("ranks that would compute something else are named, and nothing starts") {
  const auto refused = [](const std::function<void(Way&)>& change) {
    const std::string text = verdict(change);
    CAPTURE(text);
    CHECK(text.starts_with("the ranks differ in 'the plan': rank 1 has '"));
    CHECK(text.ends_with("': start all ranks with the same"));
    CHECK(text.find(", but ranks 0 and 2 have '") != std::string::npos);
  };
  refused([](Way& way) { way.dropped = 0.3; });
  refused([](Way& way) { way.relu = true; });
  refused([](Way& way) { way.options.optimizer.weight_decay = 0.1; });
  refused([](Way& way) { way.options.bucket_bytes = 1; });
}

}  // namespace plexaura::testing::agreement_test

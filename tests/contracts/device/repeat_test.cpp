// A strategy may have a step's gradients computed again: running them changes nothing but the gradient arena,
// so the step ends in the same bits. It may also stop, and then nothing was updated.

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::repeat_test {

namespace {

const TensorType weights{DType::float32, {6, 3}};
const TensorType features{DType::float32, {3}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node y = matmul(dropout(x, {.p = 0.3}), graph.parameter("w", weights));
  const BatchNormResult norm =
      batch_norm(y, graph.parameter("scale", features), graph.parameter("shift", features));
  const Node running = graph.buffer("running", features);
  graph.update(running, running * 0.75 + norm.mean * 0.25);
  return {squared_error(norm.y, t)};
}

std::vector<ParameterSpec> specs() {
  return {{"w", weights, ParameterRole::trainable, Initialiser::uniform(1)},
          {"scale", features, ParameterRole::trainable, Initialiser::ones()},
          {"shift", features, ParameterRole::trainable, Initialiser::zeros()},
          {"running", features, ParameterRole::buffer, Initialiser::zeros()}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {8, 6}}, 1), whole_numbers({DType::float32, {8, 3}}, 2)};
}

// Answers the n-th question about bucket 0 as told, and yes to all others.
struct Answering final : Strategy {
  using Kind = UpdateAnswer::Kind;
  explicit Answering(std::vector<Kind> given, std::size_t asked_bucket = 0)
      : answers(std::move(given)), bucket_of_answers(asked_bucket) {}
  HookSet hooks() const override {
    return {.gradients_ready = true, .before_update = true, .after_update = true};
  }
  void gradients_ready(std::size_t bucket, Event&) override { announced.push_back(bucket); }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket != bucket_of_answers || asked == answers.size()) return {};
    return {answers[asked++]};
  }
  void after_update() override { ++updates; }
  std::vector<Kind> answers;
  std::size_t bucket_of_answers;
  std::size_t asked = 0;
  std::vector<std::size_t> announced;
  int updates = 0;
};

}  // namespace

TEST_CASE("a repeated step ends in the bits of one that was not") {
  using Kind = UpdateAnswer::Kind;
  const Batch batch = some_batch();
  const std::vector<Batch> halves{part(batch, 0, 4), part(batch, 4, 4)};
  Answering never({});
  Answering often({Kind::repeat, Kind::ready, Kind::repeat, Kind::repeat, Kind::repeat, Kind::ready});
  const auto options = [](Strategy& strategy) {
    return SmallTraining::Options{.optimizer = {.kind = OptimizerSpec::Kind::adam},
                                  .strategy = &strategy,
                                  .sizes = {4},
                                  .micro_batches = true,
                                  .seed = 5};
  };
  SmallTraining once(test_backend(), specs(), model, batch, options(never));
  SmallTraining repeated(test_backend(), specs(), model, batch, options(often));
  for (int step = 0; step < 3; ++step) {
    CHECK(!once.launch(halves, 0.1).stopped);
    CHECK(!repeated.launch(halves, 0.1).stopped);
    CHECK(repeated.metrics().loss == once.metrics().loss);
    check_same_values(repeated.store(), once.store());
  }
  CHECK(often.asked == 6);
  CHECK(often.updates == 3);
  const std::size_t buckets = repeated.steps().border().buckets().size();
  CHECK(often.announced.size() == 7 * buckets);  // again with each repetition
}

TEST_CASE("a stopped step updates nothing") {
  using Kind = UpdateAnswer::Kind;
  Answering stopping({Kind::ready, Kind::stop});
  const Batch batch = some_batch();
  SmallTraining run(test_backend(), specs(), model, batch, {.strategy = &stopping, .sizes = {8}});
  CHECK(!run.launch(std::span(&batch, 1), 0.1).stopped);
  const Tensor before = run.value("w");
  const Tensor statistics = run.value("running");
  CHECK(run.launch(std::span(&batch, 1), 0.1).stopped);
  CHECK(run.value("w") == before);
  CHECK(run.value("running") == statistics);
  CHECK(stopping.updates == 1);
}

TEST_CASE("only the first bucket may ask for it") {
  Answering late({UpdateAnswer::Kind::repeat}, 1);
  const Batch batch = some_batch();
  SmallTraining run(test_backend(), specs(), model, batch, {.strategy = &late, .sizes = {8}});
  CHECK_THROWS_AS(run.launch(std::span(&batch, 1), 0.1), InternalError);
}

}  // namespace plexaura::testing::repeat_test

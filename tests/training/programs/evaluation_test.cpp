#include "training/programs/evaluation.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <thread>

#include "backends/registry.h"
#include "core/base/clock.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"
#include "training/data/loader.h"

namespace plexaura::testing::evaluation_test {

namespace {

Evaluation evaluate(Evaluator& evaluator, std::int64_t count) {
  Tensor samples(TensorType{DType::float64, Shape{count, 4}});
  Tensor labels(TensorType{DType::int64, Shape{count}});
  int next = 0;
  for (double& value : samples.as<double>()) value = 0.1 * static_cast<double>(next++ % 13);
  for (std::int64_t& label : labels.as<std::int64_t>()) label = next++ % 3;
  return evaluator.evaluate({samples, labels}, count);
}

}  // namespace

TEST_CASE("the evaluation sums over samples, without dropout") {
  ParameterStore store = small_store();
  SingleProcess alone;
  Evaluator evaluator(small_model, points(1)->fields(), store, test_backend(), alone);
  CHECK(evaluate(evaluator, 0).metrics == std::vector<double>{0});
  const Evaluation once = evaluate(evaluator, 7);
  const Evaluation again = evaluate(evaluator, 7);
  CHECK(once.samples == 7);
  CHECK(once.loss == again.loss);
  CHECK(evaluator.metric_names() == std::vector<std::string>{"accuracy"});
  CHECK(once.metrics == again.metrics);
  CHECK(once.metrics[0] == std::round(once.metrics[0]));
  CHECK(evaluate(evaluator, 0).samples == 0);
  CHECK(evaluate(evaluator, 0).loss == 0);
}

TEST_CASE("the evaluation reads the weights as they are") {
  ParameterStore store = small_store();
  SingleProcess alone;
  Evaluator evaluator(small_model, points(1)->fields(), store, test_backend(), alone);
  const double before = evaluate(evaluator, 7).loss;
  Tensor doubled = store.read("second");
  for (double& value : doubled.as<double>()) value *= 2;
  store.write("second", doubled);
  CHECK(evaluate(evaluator, 7).loss != before);
}

TEST_CASE("several ranks evaluate no model that calls all ranks, and one rank does") {
  const ModelBuilder model = [](const ModelInputs& inputs) {
    return LossOutputs{all_reduce_sum(mean(inputs["samples"]))};
  };
  for (const int count : {1, 2}) {
    const std::string text = user_error([&] {
      ThreadRanks(count).run([&](Collective& ranks) {
        const auto backend = open_backend(test_backend().info().name);
        ParameterStore store = small_store();
        Evaluator evaluator(model, points(1)->fields(), store, *backend, ranks);
        const Evaluation sums = together(ranks, "validation", [&] { return evaluate(evaluator, 7); });
        CHECK(sums.loss > 0);
      });
    });
    CAPTURE(text);
    CHECK(text.starts_with("the model calls all ranks in inference mode, by all_reduce_sum of ") ==
          (count == 2));
  }
}

TEST_CASE("validation needs neither a training program nor a placement") {
  ParameterStore store = small_store();
  SingleProcess alone;
  std::vector<std::int64_t> built;
  const ModelBuilder model = [&](const ModelInputs& inputs) {
    CHECK(inputs.graph().mode() == Mode::inference);
    built.push_back(inputs.samples());
    return small_model(inputs);
  };
  Evaluator evaluator(model, points(1)->fields(), store, test_backend(), alone);
  const Validation validation = validate(evaluator, points(9, 100), alone, {.batch_size = 4});
  CHECK(built == std::vector<std::int64_t>{4, 1});
  SmallRun run;
  Trainer trainer({small_model, run.store, test_backend(), points(30), points(9, 100)}, {.batch_size = 4});
  CHECK(validation.loss == doctest::Approx(trainer.validate().loss).epsilon(1e-12));
  CHECK(validation.metrics == trainer.validate().metrics);
}

TEST_CASE("validation draws for a sample by its place in the data, however these are divided") {
  const ModelBuilder noise = [](const ModelInputs& inputs) {
    const Node drawn = normal(inputs.graph(), {DType::float64, {inputs.samples()}});
    return LossOutputs{.loss = mean(drawn + 0.0 * sum(inputs["samples"]))};
  };
  const auto loss = [&](Collective& ranks, std::int64_t batch_size) {
    const auto backend = open_backend("cpu");
    ParameterStore store = small_store();
    Evaluator evaluator(noise, points(1)->fields(), store, *backend, ranks);
    const double first = validate(evaluator, points(9), ranks, {.batch_size = batch_size}).loss;
    CHECK(validate(evaluator, points(9), ranks, {.batch_size = batch_size}).loss == first);
    return first;
  };
  SingleProcess alone;
  const double whole = loss(alone, 9);
  CHECK(loss(alone, 4) == doctest::Approx(whole).epsilon(1e-12));
  ThreadRanks(2).run(
      [&](Collective& ranks) { CHECK(loss(ranks, 4) == doctest::Approx(whole).epsilon(1e-12)); });
}

TEST_CASE("a ratio of sums does not depend on how the samples are divided") {
  const ModelBuilder model = [](const ModelInputs& inputs) {
    const Node x = inputs["samples"];
    const auto sum_of = [](const Node& node) { return reshape(sum(node), {1}); };
    return LossOutputs{.loss = mean(x),
                       .metrics = {{.name = "mean", .mean = mean(x)}},
                       .validation = {.sums = concat({sum_of(square(x)), sum_of(abs(x - 0.5))}, 0),
                                      .values = [](std::span<const double> totals, double samples) {
                                        return std::vector<std::pair<std::string, double>>{
                                            {"ratio", totals[0] / totals[1]},
                                            {"root", std::sqrt(totals[0] / samples)}};
                                      }}};
  };
  const auto validate_by = [&](Collective& ranks, std::int64_t batch_size) {
    const auto backend = open_backend("cpu");
    ParameterStore store = small_store();
    Evaluator evaluator(model, points(1)->fields(), store, *backend, ranks);
    return validate(evaluator, points(9), ranks, {.batch_size = batch_size});
  };
  SingleProcess alone;
  const Validation whole = validate_by(alone, 9);
  const double ratio = value_of("ratio", whole.metrics);
  CHECK(whole.metrics.size() == 3);
  REQUIRE(whole.totals.size() == 2);
  CHECK(ratio == whole.totals[0] / whole.totals[1]);
  CHECK(value_of("root", whole.metrics) == std::sqrt(whole.totals[0] / 9));
  const auto check_same = [&](const Validation& other) {
    CHECK(value_of("ratio", other.metrics) == doctest::Approx(ratio).epsilon(1e-12));
  };
  check_same(validate_by(alone, 2));
  // In the last step of batches of 4 one of the ranks has no sample.
  for (const std::int64_t batch_size : {9, 4})
    ThreadRanks(2).run([&](Collective& ranks) { check_same(validate_by(ranks, batch_size)); });
}

TEST_CASE("sums for validation that change their shape are refused") {
  ParameterStore store = small_store();
  SingleProcess alone;
  const auto refusal = [&](const std::function<ValidationSums(const Node&)>& sums) {
    const ModelBuilder model = [&](const ModelInputs& inputs) {
      LossOutputs outputs = small_model(inputs);
      outputs.validation = sums(inputs["samples"]);
      return outputs;
    };
    Evaluator evaluator(model, points(1)->fields(), store, test_backend(), alone);
    return user_error([&] { validate(evaluator, points(9), alone, {.batch_size = 4}); });
  };
  CHECK(refusal([](const Node& x) { return ValidationSums{.sums = x}; }) ==
        "the model has 16 sums for validation with one size of batch or mode, and 4 with another; give them "
        "the "
        "same shape whatever the number of samples is");
}

TEST_CASE("validation may take longer on one rank than ranks wait for each other") {
  ThreadRanks(2, 4).run([&](Collective& ranks) {
    const auto backend = open_backend("cpu");
    ParameterStore store = small_store();
    const ModelBuilder slow_to_build = [&](const ModelInputs& inputs) {
      if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(6000));
      return small_model(inputs);
    };
    Evaluator evaluator(slow_to_build, points(1)->fields(), store, *backend, ranks);
    CHECK(validate(evaluator, points(8), ranks, {.batch_size = 8}).loss > 0);
  });
}

TEST_CASE("validation that hangs on one rank ends the run after ten deadlines and one") {
  constexpr double deadline = 0.6;
  std::atomic<bool> is_lost = false;
  const double begin = seconds_now();
  const std::string text = device_error([&] {
    ThreadRanks(2, deadline).run([&](Collective& ranks) {
      const auto backend = open_backend("cpu");
      ParameterStore store = small_store();
      const ModelBuilder hangs = [&](const ModelInputs& inputs) {
        while (ranks.rank() == 1 && !is_lost && seconds_now() - begin < 60)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return small_model(inputs);
      };
      Evaluator evaluator(hangs, points(1)->fields(), store, *backend, ranks);
      try {
        validate(evaluator, points(8), ranks, {.batch_size = 8});
      } catch (const DeviceError&) {
        is_lost = true;
        throw;
      }
    });
  });
  CAPTURE(text);
  CHECK(text.find(" did not come to 'validation' ") != std::string::npos);
  CHECK(seconds_now() - begin < 60);
}

TEST_CASE("validation needs samples") {
  ParameterStore store = small_store();
  SingleProcess alone;
  Evaluator evaluator(small_model, points(1)->fields(), store, test_backend(), alone);
  for (const auto& none : {std::shared_ptr<const SampleSource>(), points(0)})
    CHECK(user_error([&] { validate(evaluator, none, alone, {}); }) ==
          "there are no samples for validation; give some, in YAML with data.validation_share or "
          "data.validation_limit");
}

}  // namespace plexaura::testing::evaluation_test

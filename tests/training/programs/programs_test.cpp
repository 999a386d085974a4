#include "training/programs/programs.h"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/of_kind.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::programs_test {

namespace {

constexpr std::int64_t train_samples = 22;

TrainingPrograms make(ParameterStore& store, Collective& collective, Backend& backend = test_backend(),
                      const ModelBuilder& model = small_model, Strategy* strategy = nullptr) {
  const std::int64_t ranks = collective.size();
  return {model,
          points(1)->fields(),
          store,
          backend,
          collective,
          StrategyInUse(strategy),
          {train_samples, 7, ranks, 2},
          {9, 7, ranks, 1},
          {}};
}

Tensor samples(std::int64_t count) {
  Tensor tensor(TensorType{DType::float64, Shape{count, 4}});
  double next = 0;
  for (double& value : tensor.as<double>()) value = 0.1 * static_cast<double>(static_cast<int>(next++) % 13);
  return tensor;
}

Tensor labels(std::int64_t count) {
  Tensor tensor(TensorType{DType::int64, Shape{count}});
  for (std::int64_t i = 0; i < count; ++i) tensor.as<std::int64_t>()[static_cast<std::size_t>(i)] = i % 3;
  return tensor;
}

// A strategy that provides memory in a call of all ranks.
class Providing final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  std::unique_ptr<Memory> gradient_memory(std::size_t) override {
    ranks_.gather_all("", "the gradient arena");
    return nullptr;
  }
};

// A backend whose allocations fail.
class Full final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::unique_ptr<Memory> allocate(std::size_t, MemoryUse) override {
    throw DeviceError("this rank has no memory");
  }
};

// A backend whose allocations fail after a given number of them.
class Scarce final : public ForwardingBackend {
 public:
  Scarce(Backend& backend, int times) : ForwardingBackend(backend), times_(times) {}
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    if (--times_ < 0) throw OutOfMemoryError<DeviceError>("there is no memory left");
    return ForwardingBackend::allocate(bytes, use);
  }

 private:
  int times_;
};

// Returns the error for batch norm if the parts of a step have the sizes of `plan`.
std::string refusal_of_batch_norm(const BatchPlan& plan, const Shape& features, int on_ranks = 1) {
  const ModelBuilder model = [&](const ModelInputs& inputs) {
    LossOutputs outputs = small_model(inputs);
    const Node x = inputs["samples"];
    if (x.graph().mode() == Mode::inference) return outputs;
    std::vector<std::int64_t> extents{x.shape()[0]};
    extents.insert(extents.end(), features.begin(), features.end());
    const Node ones =
        x.graph().constant(Tensor::of<double>({features[0]}, std::vector<double>(features[0], 1)));
    outputs.loss = outputs.loss + mean(batch_norm(reshape(x, extents), ones, ones).y);
    return outputs;
  };
  return user_error([&] {
    ThreadRanks(on_ranks).run([&](Collective& collective) {
      const auto backend = open_backend(test_backend().info().name);
      ParameterStore store = small_store();
      const TrainingPrograms programs(model, points(1)->fields(), store, *backend, collective,
                                      StrategyInUse(nullptr), plan, {5, 1, on_ranks, 1}, {});
    });
  });
}

}  // namespace

TEST_CASE("ranks have one placement, and programs for every size of their batches") {
  ThreadRanks ranks(3);
  std::array<std::string, 3> placements;
  ranks.run([&](Collective& collective) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    TrainingPrograms programs = make(store, collective, *backend);
    placements.at(static_cast<std::size_t>(collective.rank())) = to_text(store.placement());
    const BatchPlan plan{train_samples, 7, 3, 2};
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      std::vector<Tensor> data;
      std::vector<std::array<Feed, 2>> feeds;
      std::vector<MicroBatchInputs> batches;
      data.reserve(4);
      feeds.reserve(2);
      for (std::int64_t micro = 0; micro < 2; ++micro) {
        const std::int64_t count = plan.micro_batch(step, collective.rank(), micro).count;
        const Tensor& x = data.emplace_back(samples(count));
        const Tensor& y = data.emplace_back(labels(count));
        feeds.push_back({Feed{"samples", x}, Feed{"labels", y}});
        batches.push_back({feeds.back(), count, 0});
      }
      StepInputs inputs{.micro_batches = batches,
                        .global_samples = plan.global_batch(step).count,
                        .step = step + 1,
                        .learning_rate = 0.1};
      const StepMetrics metrics = programs.step().metrics(programs.step().run(inputs));
      if (metrics.samples != static_cast<double>(plan.rank_share(step, collective.rank()).count))
        throw InternalError("wrong count");
    }
  });
  CHECK(placements[0] == placements[1]);
  CHECK(placements[0] == placements[2]);
}

TEST_CASE("a model that cannot be built on one rank ends all ranks") {
  ThreadRanks ranks(2);
  CHECK(user_error([&] {
          ranks.run([](Collective& collective) {
            const auto backend = open_backend(test_backend().info().name);
            ParameterStore store = small_store();
            make(store, collective, *backend, [&](const ModelInputs& inputs) {
              if (collective.rank() == 1) throw UserError("this rank has no model");
              return small_model(inputs);
            });
          });
        }) == "this rank has no model");
}

TEST_CASE("a model is built for the sizes of its batches and for no other") {
  const ModelBuilder pairs = [](const ModelInputs& inputs) {
    if (inputs["samples"].shape()[0] % 2 != 0) throw UserError("samples come in pairs");
    return small_model(inputs);
  };
  SingleProcess alone;
  ParameterStore store = small_store();
  const TrainingPrograms programs(pairs, points(1)->fields(), store, test_backend(), alone,
                                  StrategyInUse(nullptr), {12, 4, 1, 2}, {8, 4, 1, 1}, {});
  CHECK(programs.metric_names() == std::vector<std::string>{"accuracy"});
}

TEST_CASE("batch norm of a single element per channel is refused before the first step") {
  const auto ends = [](const std::string& text, const std::string& end) {
    CAPTURE(text);
    CHECK(text.find("programs_test.cpp") != std::string::npos);
    CHECK(text.find("batch_norm(float64[1,4") != std::string::npos);
    CHECK(text.ends_with(
        " has one element per channel, which is its own mean, so that nothing before it would be "
        "trained; " +
        end));
  };
  ends(refusal_of_batch_norm({12, 1, 1, 1}, {4}),
       "a step of an epoch has 1 of the 12 samples: give another training.batch_size, so that every step has "
       "2 "
       "samples or more");
  ends(refusal_of_batch_norm({13, 4, 1, 1}, {4, 1, 1}),
       "the last step of an epoch has 1 of the 13 samples: give another training.batch_size, so that every "
       "step "
       "has 2 samples or more");
  ends(refusal_of_batch_norm({24, 7, 2, 1}, {4}, 2),
       "the last step of an epoch has 3 of the 24 samples for 2 ranks: give another training.batch_size, so "
       "that "
       "every part of a step has 2 samples or more");
  ends(refusal_of_batch_norm({12, 6, 1, 4}, {4}),
       "a step of an epoch has 6 of the 12 samples in 4 micro-batches: give another training.batch_size, so "
       "that "
       "every part of a step has 2 samples or more");
}

TEST_CASE("batch norm of several elements per channel may have a single sample, or none") {
  CHECK(refusal_of_batch_norm({13, 4, 1, 1}, {2, 2}) == "");
  CHECK(refusal_of_batch_norm({13, 1, 1, 2}, {2, 2}) == "");
  CHECK(refusal_of_batch_norm({14, 4, 1, 1}, {4}) == "");
}

TEST_CASE("memory that a strategy makes with all ranks does not hide that one of them has none") {
  CHECK(device_error([&] {
          ThreadRanks(2).run([](Collective& collective) {
            const auto backend = open_backend(test_backend().info().name);
            Full full(*backend);
            ParameterStore store = small_store();
            Providing strategy(collective);
            Backend& own = collective.rank() == 1 ? static_cast<Backend&>(full) : *backend;
            make(store, collective, own, small_model, &strategy);
          });
        }) == "this rank has no memory");
}

TEST_CASE("wherever memory ends, the error says what it was for instead of general advice") {
  const auto refusal = [](int times) {
    return device_error([&] {
      SingleProcess alone;
      Scarce backend(test_backend(), times);
      ParameterStore store = small_store();
      make(store, alone, backend);
    });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  int times = 0;
  int of_parameters = 0;
  for (std::string text; !(text = refusal(times)).empty(); ++times) {
    CAPTURE(text);
    CHECK(text.starts_with("there is no memory left: "));
    CHECK_FALSE(has(text, "use a smaller batch"));
    const bool is_of_parameters = has(text, " bytes, whatever the batch; use a smaller model, ");
    CHECK(is_of_parameters != has(text, " bytes of intermediate values are planned for "));
    of_parameters += is_of_parameters ? 1 : 0;
  }
  CHECK(of_parameters >= 2);  // memory of values and gradients
  // At the other times the memory was for intermediate values, or for gradients of further micro-batches.
  CHECK(times - of_parameters >= 2);
}

TEST_CASE("a rank that measures for others keeps no programs of their sizes") {
  std::array<std::size_t, 2> bytes{};
  for (const bool measures : {false, true})
    ThreadRanks(2).run([&](Collective& collective) {
      const auto inner = open_backend(test_backend().info().name);
      OfKind backend(*inner, collective.rank() == 0 ? "fast" : "slow");
      ParameterStore store = small_store();
      Tuner tuner(Tuning::cached);
      const TrainingPrograms programs(small_model, points(1)->fields(), store, backend, collective,
                                      StrategyInUse(nullptr), {4, 2, 2, 1}, {100, 99, 2, 1},
                                      {.tuner = measures ? &tuner : nullptr});
      if (collective.rank() == 1) bytes.at(measures ? 1 : 0) = programs.workspace_bytes();
    });
  CHECK(bytes[0] == bytes[1]);
}

}  // namespace plexaura::testing::programs_test

// The contract of roles: one of two ranks trains, the other serves. The serving rank has no data, compiles
// nothing and runs no step. It gets its placement from the training rank and provides the initial weights.
// After each step it mixes the weights that it receives with its own, and sends the mixture back. Everything
// goes through WeightsImmigration.
#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/thread_collective.h"
#include "training/data/dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::serving_rank_test {
namespace {

constexpr int client_rank = 0;
constexpr int server_rank = 1;
constexpr std::int64_t steps_to_run = 6;
constexpr std::int64_t class_count = 3;

// Weights for which devices choose layouts of their own.
std::vector<ParameterSpec> specs() {
  const auto spec = [](std::string name, Shape shape) {
    return ParameterSpec{std::move(name),
                         {DType::float32, std::move(shape)},
                         ParameterRole::trainable,
                         Initialiser::normal(0.3)};
  };
  return {spec("conv.weight", Shape{5, 3, 3, 3}), spec("out.weight", Shape{class_count, 20})};
}

LossOutputs build(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const std::vector<ParameterSpec> all = specs();
  const Node conv = graph.parameter(all[0].name, all[0].type);
  const Node out = graph.parameter(all[1].name, all[1].type);
  const Node logits = matmul(flatten(relu(conv2d(inputs["samples"], conv))), out, {.transpose_b = true});
  return {.loss = softmax_cross_entropy(logits, inputs["labels"]),
          .metrics = {{.name = "accuracy", .sum = top_k_correct(logits, inputs["labels"])}}};
}

class Patches final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 8; }
  Shape sample_shape() const override { return Shape{3, 4, 4}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % class_count; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label_out) const override {
    label_out = label(index);
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] = static_cast<float>((static_cast<std::size_t>(index) * 7 + i * 5) % 11) / 11;
  }

 private:
  std::vector<std::string> names_{"a", "b", "c"};
};

// The server's rule: half of its own weights and half of the received ones. It applies to the bytes of any
// layout.
std::vector<std::byte> mix(std::span<const std::byte> own, std::span<const std::byte> sent) {
  std::vector<std::byte> mixed(own.size());
  for (std::size_t at = 0; at < own.size(); at += sizeof(float)) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, &own[at], sizeof a);
    std::memcpy(&b, &sent[at], sizeof b);
    const float half = (a + b) / 2;
    std::memcpy(&mixed[at], &half, sizeof half);
  }
  return mixed;
}

void overwrite(WeightsImmigration& border, std::span<const std::byte> values) {
  std::ranges::copy(values, border.fetch_values().begin());
  border.store_values();
}

// The communication of both ends, as pairs of calls.
class Line {
 public:
  explicit Line(Collective& ranks) : ranks_(ranks) {}

  void text(std::string& value, int from) {
    auto length = static_cast<std::int64_t>(value.size());
    ranks_.broadcast(reinterpret_cast<std::byte*>(&length), sizeof length, from, "the length of a text");
    value.resize(static_cast<std::size_t>(length));
    ranks_.broadcast(reinterpret_cast<std::byte*>(value.data()), value.size(), from, "a text");
  }
  void all(std::span<std::byte> values, int from) {
    ranks_.broadcast(values.data(), values.size(), from, "all weights");
  }
  // Sends each weight in its logical layout, because the layouts of the two ends may differ.
  void weights(WeightsImmigration& border, int from) {
    for (const WeightsImmigration::Entry& entry : border.entries()) {
      Tensor value = border.emigrate(entry.name);
      ranks_.broadcast(value.data(), value.bytes(), from, entry.name);
      if (ranks_.rank() != from) border.immigrate(entry.name, value);
    }
  }

 private:
  Collective& ranks_;
};

class Client final : public Strategy, public WeightExchange {
 public:
  explicit Client(Collective& ranks) : line_(ranks) {}

  StrategyParts parts() override { return {.weights = this}; }
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    std::string placement = to_text(border.placement());
    line_.text(placement, client_rank);
    line_.weights(border, server_rank);
  }
  void after_update() override {
    say("weights");
    const std::span<std::byte> values = border_->fetch_values();
    line_.all(values, client_rank);
    line_.weights(*border_, server_rank);
  }
  void end() override { say("the end"); }

 private:
  void say(std::string word) { line_.text(word, client_rank); }

  Line line_;
  WeightsImmigration* border_ = nullptr;
};

class Serving final : public Strategy, public Server {
 public:
  explicit Serving(Collective& ranks) : line_(ranks) {}

  StrategyParts parts() override { return {.server = this}; }
  void serve(WeightsImmigration& border) override {
    line_.weights(border, server_rank);
    std::vector<std::byte> sent(border.fetch_values().size());
    for (std::string word; line_.text(word, client_rank), word == "weights"; ++rounds) {
      line_.all(sent, client_rank);
      overwrite(border, mix(border.fetch_values(), sent));
      line_.weights(border, server_rank);
    }
  }

  std::int64_t rounds = 0;

 private:
  Line line_;
};

// Applies the same rule if one rank trains by itself.
class ServesItself final : public Strategy, public WeightExchange {
 public:
  StrategyParts parts() override { return {.weights = this}; }
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    const std::span<const std::byte> values = border.fetch_values();
    held_.assign(values.begin(), values.end());
  }
  void after_update() override {
    held_ = mix(held_, border_->fetch_values());
    overwrite(*border_, held_);
  }

 private:
  WeightsImmigration* border_ = nullptr;
  std::vector<std::byte> held_;
};

void train(ParameterStore& store, Backend& backend, Strategy* strategy) {
  const auto data = std::make_shared<Patches>();
  TrainerOptions options;
  options.batch_size = 4;
  options.epochs = steps_to_run;
  options.steps = steps_to_run;
  options.learning_rate = 0.1;
  SingleProcess alone;
  Trainer trainer({.model = build,
                   .store = store,
                   .backend = backend,
                   .train = data,
                   .validation = data,
                   .collective = &alone,
                   .strategy = strategy},
                  options);
  trainer.run();
}

void serve(Collective& ranks, ParameterStore& store, Backend& backend) {
  Serving server(ranks);
  std::string placement;
  Line(ranks).text(placement, client_rank);
  store.place(parse_placement(placement), backend);
  WeightsImmigration border(store, 1 << 20);
  server.begin(border);
  server.parts().server->serve(border);
  CHECK(server.rounds == steps_to_run);
}

bool same_weights(const ParameterStore& a, const ParameterStore& b) {
  return std::ranges::all_of(specs(), [&](const ParameterSpec& spec) {
    const Tensor left = a.read(spec.name);
    const Tensor right = b.read(spec.name);
    return std::memcmp(left.data(), right.data(), left.bytes()) == 0;
  });
}

// The client's own initial weights are overwritten before its first step, so only the server's seed matters.
void check_serving(const std::string& client_backend, const std::string& server_backend) {
  const auto at_client = open_backend(client_backend);
  const auto at_server = open_backend(server_backend);
  ParameterStore trained(specs(), 2);
  ParameterStore served(specs(), 1);
  testing::ThreadRanks(2).run([&](Collective& ranks) {
    if (ranks.rank() == server_rank) return serve(ranks, served, *at_server);
    Client client(ranks);
    train(trained, *at_client, &client);
  });
  CHECK(same_weights(trained, served));

  ParameterStore alone(specs(), 1);
  ServesItself itself;
  train(alone, *at_client, &itself);
  CHECK(same_weights(trained, alone));
  CHECK_FALSE(same_weights(trained, ParameterStore(specs(), 1)));
}

}  // namespace

TEST_CASE("a serving rank: gives the first weights, and mixes in what it is sent") {
  const std::string backend = testing::test_backend().info().name;
  check_serving(backend, backend);
  if (backend == "cpu") return;
  check_serving(backend, "cpu");
  check_serving("cpu", backend);
}

}  // namespace plexaura::testing::serving_rank_test

#include "models/predictor.h"

#include <atomic>
#include <doctest/doctest.h>
#include <thread>

#include "backends/registry.h"
#include "core/device/forwarding_backend.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/zoo/pixel_scale.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/gate.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura::testing::predictor_test {

namespace {

const char* const yaml = "model: {name: mlp, hidden: [5]}\n";

// A linear layer with dropout, which would make calls differ in training mode.
class Net : public Module {
 public:
  void members(MemberVisitor& visit) override { visit("fc", fc); }
  Node operator()(Operand x) const { return fc(dropout(x)); }
  layers::Linear fc{2, 1, {.bias = false}};
  layers::Dropout dropout;
};

// A convolution of one channel and a batch norm.
class ConvNet : public Module {
 public:
  void members(MemberVisitor& visit) override {
    visit("conv", conv);
    visit("norm", norm);
  }
  Node operator()(Operand x) const { return norm(conv(x)); }
  layers::Conv2d conv{1, 1, {1, 1}};
  layers::BatchNorm norm{1, {.epsilon = 1e-12}};
};

ParameterStore store_of(Net& net) {
  ParameterStore store = make_store(net, DType::float64);
  store.write("fc.weight", Tensor::of<double>({1, 2}, {1, 10}));
  return store;
}

Tensor samples_of(std::int64_t count) {
  Tensor samples(TensorType{DType::float64, {count, 2}});
  for (double& element : samples.as<double>()) element = static_cast<double>(count);
  return samples;
}

// Returns the answers of Net for samples_of(), with the weights of store_of().
Tensor answers_of(std::int64_t count) {
  Tensor answers(TensorType{DType::float64, {count, 1}});
  for (double& element : answers.as<double>()) element = static_cast<double>(11 * count);
  return answers;
}

// Counts the pieces of memory that are allocated.
class CountingMemory final : public ForwardingBackend {
 public:
  explicit CountingMemory(Backend& inner) : ForwardingBackend(inner) {}
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    return std::make_unique<Counted>(inner().allocate(bytes, use), held_);
  }
  int held() const { return *held_; }

 private:
  class Counted final : public Memory {
   public:
    Counted(std::unique_ptr<Memory> memory, std::shared_ptr<int> held)
        : memory_(std::move(memory)), held_(std::move(held)) {
      ++*held_;
    }
    ~Counted() override { --*held_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    Address address() const override { return memory_->address(); }
    std::size_t bytes() const override { return memory_->bytes(); }

   private:
    std::unique_ptr<Memory> memory_;
    std::shared_ptr<int> held_;
  };

  std::shared_ptr<int> held_ = std::make_shared<int>(0);
};

}  // namespace

TEST_CASE("a predictor needs a model") {
  Net net;
  ParameterStore store = make_store(net, DType::float64);
  CHECK(user_error([&] {
          Predictor(Predictor::Forward(), store, test_backend());
        }).starts_with("the Predictor has no model"));
}

TEST_CASE("a predictor runs a model in inference, for any number of samples, on the weights as they are") {
  Net net;
  ParameterStore store = make_store(net, DType::float64);
  store.write("fc.weight", Tensor::of<double>({1, 2}, {1, 10}));
  Predictor predict([&](Node x) { return net(x); }, store, test_backend());
  CHECK(predict(Tensor::of<double>({1, 2}, {1, 2})) == Tensor::of<double>({1, 1}, {21}));
  CHECK(predict(Tensor::of<float>({2, 2}, {1, 2, 3, 4})) == Tensor::of<double>({2, 1}, {21, 43}));
  store.write("fc.weight", Tensor::of<double>({1, 2}, {2, 20}));
  CHECK(predict(Tensor::of<float>({2, 2}, {1, 2, 3, 4})) == Tensor::of<double>({2, 1}, {42, 86}));
  // The predictor also follows a change of the store's placement.
  store.place(Placement(store.placement()), test_backend());
  CHECK(predict(Tensor::of<double>({1, 2}, {1, 2})) == Tensor::of<double>({1, 1}, {42}));
}

TEST_CASE(
    "a predictor whose batch norms are folded uses weights and statistics that were written after a call") {
  ConvNet net;
  ParameterStore store = make_store(net, DType::float32, 3);
  Predictor predict([&](Node x) { return net(x); }, store, test_backend());
  const Tensor samples = Tensor::of<float>({1, 1, 1, 2}, {1, -2});
  const auto answers = [&] { return predict(samples).to_doubles(); };
  const auto check = [&](double first, double second) {
    CHECK(answers()[0] == doctest::Approx(first).epsilon(1e-5));
    CHECK(answers()[1] == doctest::Approx(second).epsilon(1e-5));
  };
  store.write("conv.weight", Tensor::of<float>({1, 1, 1, 1}, {3}));
  store.write("conv.bias", Tensor::of<float>({1}, {0}));
  check(3, -6);
  store.write("conv.weight", Tensor::of<float>({1, 1, 1, 1}, {5}));
  check(5, -10);
  store.write("norm.running_mean", Tensor::of<float>({1}, {1}));
  check(4, -11);
  store.write("norm.running_var", Tensor::of<float>({1}, {4}));
  check(2, -5.5);
  store.write("norm.bias", Tensor::of<float>({1}, {1}));
  check(3, -4.5);
  store.place(Placement(store.placement()), test_backend());
  check(3, -4.5);
  Predictor clone = predict.clone();
  CHECK(clone(samples) == predict(samples));
}

TEST_CASE("a predictor of a YAML file gives the logits of the model that was saved") {
  const TemporaryFolder folder;
  const Config config = Config::parse(yaml, "net.yaml");
  const auto model = make_model(config, Shape{4}, 3);
  ParameterStore store = make_store(*model, DType::float32, 5);
  save_weights(folder / "weights", store);
  Predictor here([&](Node x) { return (*model)(x); }, store, test_backend());
  Predictor there(config, folder / "weights", Shape{4}, 3, test_backend());
  const Tensor samples = Tensor::of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(there(samples) == here(samples));
  CHECK(there(samples).shape() == Shape{2, 3});
  CHECK(user_error([&] {
          Predictor(config, folder / "weights", Shape{4}, 2, test_backend());
        }).find("'fc2.weight'") != std::string::npos);
}

TEST_CASE("a model normalises images that are bytes as the section data says, and takes floats as they are") {
  const TemporaryFolder folder;
  const Config config = Config::parse(
      "model: {name: mlp, hidden: [5]}\ndata: {format: image_folder, mean: [0.5, 0.25, 0], stddev: [0.5, 1, "
      "2]}\n",
      "net.yaml");
  const Shape sample{3, 1, 2};
  for (const DType dtype : {DType::float32, DType::float64}) {
    const auto model = make_model(config, sample, 3);
    ParameterStore store = make_store(*model, dtype, 5);
    Predictor predict([&](Node x) { return (*model)(x); }, store, test_backend());
    const Tensor bytes = Tensor::of<std::uint8_t>({1, 3, 1, 2}, {0, 255, 51, 255, 0, 102});
    const Tensor floats = Tensor::of<double>({1, 3, 1, 2}, {-1, 1, -0.05, 0.75, 0, 0.2});
    const Tensor expected = predict(floats);
    const Tensor logits = predict(bytes);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(logits.to_doubles()[i] == doctest::Approx(expected.to_doubles()[i]).epsilon(1e-5));
    if (dtype != DType::float32) continue;
    save_weights(folder / "weights", store);
    CHECK(Predictor(config, folder / "weights", sample, 3, test_backend())(bytes) == logits);
  }
}

TEST_CASE("a predictor that answers another thread refuses a call, and its clone has the same answers") {
  Net net;
  ParameterStore store = store_of(net);
  Predictor predict([&](Node x) { return gated(net(x)); }, store, oracle());
  Predictor clone = predict.clone();
  gate_of_tests().open();
  CHECK(clone(samples_of(1)) == answers_of(1));
  Tensor answer;
  while_running([&] { answer = predict(samples_of(2)); },
                [&] {
                  CHECK(user_error([&] { predict(samples_of(1)); }) ==
                        "a Predictor answers one thread at a time; clone() one for each thread");
                });
  CHECK(answer == answers_of(2));
  CHECK(predict(samples_of(1)) == answers_of(1));
}

TEST_CASE("a predictor that its own model asks refuses the call, and says that it is the same thread") {
  Net net;
  ParameterStore store = store_of(net);
  Predictor* itself = nullptr;
  std::string text;
  Predictor predict(
      [&](Node x) {
        text = user_error([&] { (*itself)(samples_of(1)); });
        return net(x);
      },
      store, test_backend());
  itself = &predict;
  CHECK(predict(samples_of(1)) == answers_of(1));
  CHECK(text.starts_with("a Predictor was called from within another call of itself"));
}

TEST_CASE("clones compile and answer in several threads at once") {
  Net net;
  ParameterStore store = store_of(net);
  const Predictor predict([&](Node x) { return net(x); }, store, test_backend());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, own = predict.clone()]() mutable {
      for (std::int64_t round = 0; round < 24; ++round)
        if (own(samples_of(1 + round % 6)) == answers_of(1 + round % 6)) ++right;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 4 * 24);
}

TEST_CASE("clones share programs and prepared weights, and follow what is written to the store") {
  ConvNet net;
  ParameterStore store = make_store(net, DType::float32, 3);
  CountingMemory backend(test_backend());
  int built = 0;
  Predictor predict(
      [&](Node x) {
        ++built;
        return net(x);
      },
      store, backend);
  const Tensor samples = Tensor::of<float>({1, 1, 1, 2}, {1, -2});
  const auto held_for = [&](Predictor& predictor) {
    const int before = backend.held();
    predictor(samples);
    return backend.held() - before;
  };
  const int own = held_for(predict);
  Predictor first = predict.clone();
  Predictor second = first.clone();
  const int of_clone = held_for(first);
  CHECK(of_clone == held_for(second));
  CHECK(of_clone < own);
  CHECK(built == 1);
  store.write("conv.weight", Tensor::of<float>({1, 1, 1, 1}, {3}));
  store.write("conv.bias", Tensor::of<float>({1}, {0}));
  for (Predictor* predictor : {&second, &predict, &first})
    CHECK((*predictor)(samples).to_doubles()[1] == doctest::Approx(-6).epsilon(1e-5));
  store.place(Placement(store.placement()), backend);
  CHECK(first(samples) == second(samples));
  CHECK(predict(samples) == first(samples));
  CHECK(built == 2);
}

TEST_CASE(
    "a predictor goes on when its store was moved or is gone, and with weights written to the moved one") {
  Net net;
  const auto make = [&] {
    ParameterStore store = store_of(net);
    Predictor predict([&](Node x) { return net(x); }, store, test_backend());
    return std::pair(std::move(store), std::move(predict));
  };
  auto [store, predict] = make();
  CHECK(predict(samples_of(2)) == answers_of(2));
  store.write("fc.weight", Tensor::of<double>({1, 2}, {2, 20}));
  CHECK(predict(samples_of(1)) == Tensor::of<double>({1, 1}, {22}));
  Predictor alone = make().second;
  CHECK(alone(samples_of(3)) == answers_of(3));
}

TEST_CASE("a predictor shares a backend that is shared, and notices that another backend is gone") {
  Net net;
  ParameterStore store = store_of(net);
  auto backend = open_backend("portable");
  Predictor predict([&](Node x) { return net(x); }, store, *backend);
  CHECK(predict(samples_of(1)) == answers_of(1));
  backend.reset();
  for (const std::int64_t count : {1, 2})
    CHECK(user_error([&] {
            predict(samples_of(count));
          }).starts_with("the backend was destroyed before what was made"));
  ParameterStore other = store_of(net);
  std::shared_ptr<Backend> shared = open_backend("portable");
  Predictor sharing([&](Node x) { return net(x); }, other, *shared);
  shared.reset();
  CHECK(sharing(samples_of(1)) == answers_of(1));
}

TEST_CASE("a predictor keeps the programs of the shapes that came last, and no more memory for more shapes") {
  Net net;
  ParameterStore store = store_of(net);
  CountingMemory backend(test_backend());
  int built = 0;
  Predictor predict(
      [&](Node x) {
        ++built;
        return net(x);
      },
      store, backend, {.kept_programs = 2});
  const auto compiles = [&](std::int64_t count) {
    const int before = built;
    CHECK(predict(samples_of(count)) == answers_of(count));
    return built > before;
  };
  CHECK(compiles(1));
  CHECK(compiles(2));
  const int held = backend.held();
  CHECK(!compiles(1));
  CHECK(compiles(3));
  CHECK(!compiles(1));
  CHECK(compiles(2));
  for (std::int64_t count = 4; count < 40; ++count) CHECK(compiles(count));
  CHECK(backend.held() == held);
  CHECK(user_error([&] {
          Predictor([&](Node x) { return net(x); }, store, backend, {.kept_programs = 0});
        }) == "PredictorOptions::kept_programs is 0; a Predictor keeps at least one program");
}

}  // namespace plexaura::testing::predictor_test

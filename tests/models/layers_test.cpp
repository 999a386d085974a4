#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "models/layers/attention.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/embedding.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/layers/recurrent.h"
#include "models/layers/sequential.h"
#include "models/layers/transformer.h"
#include "tests/support/error_text.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::layers_test {

namespace {

constexpr DType real = DType::float64;

Tensor values(Shape shape, const std::vector<double>& numbers) {
  return Tensor::of<double>(std::move(shape), numbers);
}

void check_close(const Tensor& found, const std::vector<double>& expected) {
  const std::vector<double> numbers = found.to_doubles();
  REQUIRE(numbers.size() == expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(numbers[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

class Pair : public Module {
 public:
  Pair() : decoder(3, 2, {.bias = false, .tied_weight = &encoder.weight()}) {}
  void members(MemberVisitor& visit) override {
    visit("encoder", encoder);
    visit("decoder", decoder);
  }
  layers::Linear encoder{3, 2};
  layers::Linear decoder;
};

}  // namespace

TEST_CASE("linear multiplies by the transposed weight and adds the bias") {
  layers::Linear linear(2, 3);
  ParameterStore store = make_store(linear, real);
  store.write("weight", values({3, 2}, {1, 2, 3, 4, 5, 6}));
  store.write("bias", values({3}, {10, 20, 30}));
  Graph graph;
  const Node x = graph.input("x", {real, {1, 2}});
  check_close(run_graph(graph, store, {linear(x)}, {{"x", values({1, 2}, {1, -1})}})[0], {9, 19, 29});
}

TEST_CASE("an error of an op within a layer names the layer, and the line of its caller") {
  layers::Embedding words{10, 4};
  layers::MultiheadAttention attention{4, 2};
  specs_of(words, DType::float32, "words");
  specs_of(attention, DType::float32, "attention");
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3, 4}});
  const Node mask = graph.input("mask", {DType::int64, {3, 3}});
  const int line = __LINE__ + 1;
  const std::string of_words = user_error([&] { words(x); });
  CHECK(of_words.starts_with(fmt::format("tests/models/layers_test.cpp:{} (words): embedding(", line)));
  const std::string of_mask = user_error([&] { attention(x, {.mask = mask}); });
  CHECK(of_mask.starts_with(
      fmt::format("tests/models/layers_test.cpp:{} (attention): scaled_dot_product_attention(", line + 2)));
}

TEST_CASE("linear and convolution start within 1 / sqrt(inputs of an output)") {
  layers::Sequential net;
  net.append<layers::Linear>(100, 50);
  net.append<layers::Conv2d>(4, 8, Size2d{5, 5});
  const ParameterStore store = make_store(net, real);
  for (const char* name : {"0.weight", "0.bias", "1.weight", "1.bias"}) {
    double largest = 0;
    for (const double value : store.read(name).to_doubles()) largest = std::max(largest, std::abs(value));
    CHECK(largest <= 0.1);
    CHECK(largest > 0.05);
  }
}

TEST_CASE("a tied weight is one entry, and its gradient is the sum over both uses") {
  Pair pair;
  const auto specs = specs_of(pair, real);
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].aliases == std::vector<std::string>{"decoder.weight"});

  ParameterStore store(specs);
  Graph graph;
  const Node x = graph.input("x", {real, {1, 3}});
  const Node loss = sum(pair.encoder(x)) + sum(pair.decoder(x));
  const Node weight = pair.encoder.weight().in(graph);
  const Node grad = gradients(loss, {weight})[0];
  check_close(run_graph(graph, store, {grad}, {{"x", values({1, 3}, {1, 2, 3})}})[0], {2, 4, 6, 2, 4, 6});
  CHECK(user_error([&] {
          layers::Linear other(4, 2, {.tied_weight = &pair.encoder.weight()});
        }).find("[2,4]") != std::string::npos);
}

TEST_CASE("a layer has the name of its op, is called when it is const, and lies in a vector") {
  using namespace plexaura;
  using namespace plexaura::layers;
  struct Images : Module {
    Images() {
      for (int i = 0; i < 3; ++i) linear.emplace_back(4, 4);
    }
    void members(MemberVisitor& visit) override {
      visit("conv", conv);
      visit("linear", linear);
    }
    Node operator()(Operand x) const {
      Node y = dropout(flatten(average(largest(conv(x)))));
      for (const Linear& map : linear) y = map(y);
      return y;
    }
    Conv2d conv{1, 4, 3};
    MaxPool2d largest{2};
    AvgPool2d average{3};
    Flatten flatten;
    Dropout dropout{0.5};
    std::vector<Linear> linear;
  } images;
  make_store(images, DType::float32);
  const Images& model = images;
  Graph graph;
  CHECK(model(graph.input("x", {DType::float32, {2, 1, 8, 8}})).shape() == Shape{2, 4});
}

TEST_CASE("the names of layers can be used together with those of ops") {
  using namespace plexaura;
  using namespace plexaura::layers;
  using All = std::tuple<Activation, AvgPool2d, BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d,
                         ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Dropout, Embedding, Flatten,
                         GlobalAvgPool, GroupNorm, Gru, Identity, InstanceNorm, LastStep, LayerNorm, Linear,
                         Lstm, MaxPool2d, MeanOfSteps, MultiheadAttention, Positions, ReshapeSamples,
                         Residual, RmsNorm, Rnn, Sequential, Standardise, Tokens, TransformerDecoder,
                         TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer, Upsample>;
  CHECK(std::tuple_size_v<All> == 39);
}

TEST_CASE("one number makes a square kernel, stride and padding") {
  layers::Conv2d plain(3, 4, 3, {.padding = 1});
  layers::Conv2d braced(3, 4, {3}, {.stride = {2}, .padding = {2}});
  layers::MaxPool2d pool({.kernel = 2});
  const auto shape_of = [](layers::Layer& layer, Shape input) {
    make_store(layer, DType::float32);
    Graph graph;
    return layer(graph.input("x", {DType::float32, std::move(input)})).shape();
  };
  CHECK(shape_of(plain, {1, 3, 8, 8}) == Shape{1, 4, 8, 8});
  CHECK(shape_of(braced, {1, 3, 8, 8}) == Shape{1, 4, 5, 5});
  CHECK(shape_of(pool, {1, 3, 8, 8}) == Shape{1, 3, 4, 4});
}

TEST_CASE("convolution declares OIHW weights and refuses groups that do not divide the channels") {
  layers::Conv2d conv(4, 6, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2, .bias = false});
  const auto specs = specs_of(conv, real);
  REQUIRE(specs.size() == 1);
  CHECK(specs[0].type.shape == Shape{6, 2, 3, 3});
  Graph graph;
  CHECK(conv(graph.input("x", {real, {2, 4, 7, 8}})).shape() == Shape{2, 6, 4, 4});
  CHECK(user_error([] {
          layers::Conv2d bad(4, 6, {3, 3}, {.groups = 4});
        }).find("4 groups") != std::string::npos);
}

TEST_CASE(
    "batch norm uses the batch in training and the running statistics in inference, by the graph's mode") {
  layers::BatchNorm2d norm(1);
  ParameterStore store = make_store(norm, real);
  const Tensor x = values({2, 1, 1, 2}, {1, 2, 3, 6});  // mean 3, variance 3.5, unbiased 14 / 3
  const auto run = [&](Mode mode) {
    Graph graph(mode);
    return run_graph(graph, store, {norm(graph.input("x", {real, x.shape()}))}, {{"x", x}})[0];
  };
  const double deviation = std::sqrt(3.5 + 1e-5);
  const auto trained = [&] {
    check_close(run(Mode::train), {-2 / deviation, -1 / deviation, 0, 3 / deviation});
  };
  trained();
  check_close(store.read("running_mean"), {0.3});
  check_close(store.read("running_var"), {0.9 + 1.4 / 3});

  const double running = std::sqrt(0.9 + 1.4 / 3 + 1e-5);
  check_close(run(Mode::inference), {0.7 / running, 1.7 / running, 2.7 / running, 5.7 / running});
  check_close(store.read("running_mean"), {0.3});
  // A step after a validation is in training mode again.
  trained();
  check_close(store.read("running_mean"), {0.57});
}

TEST_CASE("a frozen batch norm uses its running statistics in training and leaves them as they are") {
  layers::BatchNorm2d norm(1, {.frozen = true});
  ParameterStore store = make_store(norm, real);
  store.write("running_mean", values({1}, {2}));
  store.write("running_var", values({1}, {4}));
  Graph graph(Mode::train);
  const Node x = graph.input("x", {real, {1, 1, 1, 2}});
  const Node y = norm(x);
  const Node scale = graph.parameter("weight", {real, {1}});
  const auto found =
      run_graph(graph, store, {y, gradients(sum(y * y), {scale})[0]}, {{"x", values({1, 1, 1, 2}, {2, 4})}});
  const double one = 2 / std::sqrt(4 + 1e-5);
  check_close(found[0], {0, one});
  check_close(found[1], {2 * one * one});
  check_close(store.read("running_mean"), {2});
  check_close(store.read("running_var"), {4});
  CHECK(user_error([] {
          layers::BatchNorm2d both(1, {.synchronised = true, .frozen = true});
        }).find("give one of both") != std::string::npos);
}

TEST_CASE("a batch norm that is called while a graph evaluates leaves its statistics as they are") {
  layers::BatchNorm2d norm(1);
  ParameterStore store = make_store(norm, real);
  store.write("running_mean", values({1}, {2}));
  store.write("running_var", values({1}, {4}));
  Graph graph(Mode::train);
  const Node x = graph.input("x", {real, {1, 1, 1, 2}});
  const auto evaluated = [&] {
    const Graph::Evaluating scope(graph);
    return norm(x);
  };
  check_close(run_graph(graph, store, {evaluated()}, {{"x", values({1, 1, 1, 2}, {2, 4})}})[0],
              {0, 2 / std::sqrt(4 + 1e-5)});
  check_close(store.read("running_mean"), {2});
  const Node trained = norm(x);  // the graph trains again
  run_graph(graph, store, {trained}, {{"x", values({1, 1, 1, 2}, {2, 4})}});
  check_close(store.read("running_mean"), {2.1});
}

TEST_CASE("batch norm takes rows, sequences, images and volumes") {
  layers::BatchNorm3d norm(2);
  ParameterStore store = make_store(norm, real);
  const std::vector<double> numbers{1, 2, 3, 6, 5, 5, 7, 9, 0, 2, 4, 8, 1, 1, 3, 5};
  const auto run = [&](const Shape& shape) {
    Graph graph;
    const Node y = norm(graph.input("x", {real, shape}));
    CHECK(y.shape() == shape);
    return run_graph(graph, store, {y}, {{"x", values(shape, numbers)}})[0].to_doubles();
  };
  const Tensor sequence = values({16}, run({2, 2, 4}));
  for (const Shape& shape : {Shape{2, 2, 2, 2}, Shape{2, 2, 1, 2, 2}, Shape{2, 2, 2, 2, 1}})
    check_close(sequence, run(shape));
  Graph graph;
  CHECK(norm(graph.input("rows", {real, {3, 2}})).shape() == Shape{3, 2});
}

TEST_CASE("flatten makes one axis of those that it is told") {
  const auto shape_of = [](const layers::Flatten& flatten) {
    Graph graph;
    return flatten(graph.input("x", {real, {2, 3, 4, 5}})).shape();
  };
  CHECK(shape_of(layers::Flatten()) == Shape{2, 60});
  CHECK(shape_of(layers::Flatten(2)) == Shape{2, 3, 20});
  CHECK(shape_of(layers::Flatten(-3, 2)) == Shape{2, 12, 5});
  CHECK(user_error([&] { shape_of(layers::Flatten(4)); }).find("has no axis 4; name one of its 4 axes") !=
        std::string::npos);
  CHECK(user_error([&] { shape_of(layers::Flatten(3, 1)); }).find("must not be before the first") !=
        std::string::npos);
}

TEST_CASE("upsampling repeats or interpolates pixels, and an identity returns its input") {
  ParameterStore store(std::vector<ParameterSpec>{});
  Graph graph;
  const Node x = graph.input("x", {real, {1, 1, 2}});
  const layers::Upsample twice(2);
  const layers::Upsample between({.size = {3}, .mode = InterpolateMode::linear, .align_corners = true});
  const auto found = run_graph(graph, store, {twice(x), between(x)}, {{"x", values({1, 1, 2}, {1, 3})}});
  check_close(found[0], {1, 1, 3, 3});
  check_close(found[1], {1, 2, 3});
  CHECK(same_value(layers::Identity()(x), x));
}

TEST_CASE("an activation has the name of its op") {
  ParameterStore store(std::vector<ParameterSpec>{});
  const std::map<std::string, double> at_minus_1{
      {"relu", 0},
      {"sigmoid", 1 / (1 + std::exp(1))},
      {"tanh", std::tanh(-1)},
      {"gelu", -0.5 * (1 + std::erf(-std::sqrt(0.5)))},
      {"silu", -1 / (1 + std::exp(1))},
      {"elu", std::exp(-1) - 1},
      {"leaky_relu", -0.01},
  };
  CHECK(at_minus_1.size() == layers::Activation::names().size());
  for (const auto& [name, expected] : at_minus_1) {
    Graph graph;
    const Node y = layers::Activation(name)(graph.input("x", {real, {1}}));
    check_close(run_graph(graph, store, {y}, {{"x", values({1}, {-1})}})[0], {expected});
  }
}

TEST_CASE("dropout drops in training alone, and what remains is scaled") {
  layers::Dropout dropout(0.25);
  ParameterStore store(std::vector<ParameterSpec>{});
  const Tensor ones = values({1, 1000}, std::vector<double>(1000, 1.0));
  const auto run = [&](Mode mode) {
    Graph graph(mode);
    return run_graph(graph, store, {dropout(graph.input("x", {real, ones.shape()}))}, {{"x", ones}})[0]
        .to_doubles();
  };
  int dropped = 0;
  for (const double value : run(Mode::train)) {
    dropped += value == 0;
    CHECK((value == 0 || value == doctest::Approx(4.0 / 3)));
  }
  CHECK(dropped > 200);
  CHECK(dropped < 300);
  for (const double value : run(Mode::inference)) CHECK(value == 1);
}

TEST_CASE("global average pooling has a gradient") {
  layers::GlobalAvgPool pool;
  ParameterStore store(std::vector<ParameterSpec>{});
  Graph graph;
  const Node x = graph.input("x", {real, {1, 2, 1, 2}});
  const Node y = pool(x);
  CHECK(y.shape() == Shape{1, 2});
  const Node grad = gradients(sum(y * 3), {x})[0];
  const auto found = run_graph(graph, store, {y, grad}, {{"x", values({1, 2, 1, 2}, {1, 2, 5, 9})}});
  check_close(found[0], {1.5, 7});
  check_close(found[1], {1.5, 1.5, 1.5, 1.5});
}

TEST_CASE("average and maximum pooling differ") {
  layers::AvgPool2d average({.kernel = {1, 2}});
  layers::MaxPool2d maximum({.kernel = {1, 2}});
  ParameterStore store(std::vector<ParameterSpec>{});
  Graph graph;
  const Node x = graph.input("x", {real, {1, 1, 1, 2}});
  const auto found = run_graph(graph, store, {average(x), maximum(x)}, {{"x", values({1, 1, 1, 2}, {1, 3})}});
  check_close(found[0], {2});
  check_close(found[1], {3});
}

TEST_CASE("standardise brings each sample to mean 0 and variance 1") {
  layers::Standardise standardise;
  ParameterStore store(std::vector<ParameterSpec>{});
  Graph graph;
  const Node x = graph.input("x", {real, {2, 2}});
  const Tensor y = run_graph(graph, store, {standardise(x)}, {{"x", values({2, 2}, {1, 3, 100, 500})}})[0];
  const double one = 1 / std::sqrt(1 + 1e-5);
  check_close(y, {-one, one, -1, 1});
}

TEST_CASE("a residual adds its input, and the shortcut takes its place where there is one") {
  auto doubled = std::make_unique<layers::Sequential>();
  doubled->append_named<layers::Linear>("fc", 2, 2, layers::LinearOptions{.bias = false});
  layers::Residual residual(std::move(doubled));
  ParameterStore store = make_store(residual, real);
  store.write("body.fc.weight", values({2, 2}, {2, 0, 0, 2}));
  Graph graph;
  const Node x = graph.input("x", {real, {1, 2}});
  check_close(run_graph(graph, store, {residual(x)}, {{"x", values({1, 2}, {1, -1})}})[0], {3, 0});
}

TEST_CASE("a residual has another activation, or none") {
  const auto run = [](std::optional<layers::Activation> activation) {
    layers::Residual residual(std::make_unique<layers::Identity>(), nullptr, std::move(activation));
    ParameterStore store = make_store(residual, real);
    Graph graph;
    const Node x = graph.input("x", {real, {1, 2}});
    return run_graph(graph, store, {residual(x)}, {{"x", values({1, 2}, {1, -1})}})[0];
  };
  check_close(run({}), {2, -2});
  check_close(run(layers::Activation("tanh")), {std::tanh(2), -std::tanh(2)});
}

TEST_CASE("a residual whose body has another shape is refused, even where it would broadcast") {
  auto narrowing = std::make_unique<layers::Sequential>();
  narrowing->append_named<layers::Linear>("fc", 2, 1);
  layers::Residual residual(std::move(narrowing));
  ParameterStore store = make_store(residual, real);
  Graph graph;
  const std::string error = user_error([&] { residual(graph.input("x", {real, {1, 2}})); });
  CAPTURE(error);
  CHECK(
      error.find("a residual block adds its body, [1,1], to its shortcut, [1,2]; give both the same shape") !=
      std::string::npos);
}

TEST_CASE("sequential numbers its layers and refuses a name twice") {
  layers::Sequential net;
  net.append<layers::Linear>(2, 3);
  net.append<layers::Activation>("relu");
  net.append<layers::Linear>(3, 1);
  const auto specs = specs_of(net, real);
  CHECK(specs[2].name == "2.weight");
  CHECK(user_error([&] { net.append_named<layers::Flatten>("1"); }).find("two layers are named '1'") !=
        std::string::npos);
  CHECK(user_error([] { layers::Activation unknown("rellu"); }) ==
        "there is no activation 'rellu'; did you mean 'relu'?");
}

}  // namespace plexaura::testing::layers_test

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <sstream>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "models/zoo/mlp.h"
#include "models/zoo/model.h"
#include "models/zoo/summary.h"
#include "tests/support/error_text.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::make_model_test {

namespace {

// A linear layer of 4 inputs and 3 outputs whose bias is frozen.
class PartlyFrozen final : public Model {
 public:
  PartlyFrozen() : Model({.sample_shape = {4}, .classes = 3}) {}
  void members(MemberVisitor& visit) override {
    visit("weight", weight_);
    visit("bias", bias_);
  }

 private:
  Node forward(Operand x) const override {
    return matmul(x, weight_.in(x.node().graph())) + bias_.in(x.node().graph());
  }

  Parameter weight_{{4, 3}, Initialiser::zeros()};
  Parameter bias_{{3}, Initialiser::zeros(), ParameterRole::frozen};
};

Config parse(const std::string& model) { return Config::parse("model:\n" + model, "x.yaml"); }

std::unique_ptr<Model> make(const std::string& model, const Shape& sample, std::int64_t classes) {
  const Config config = parse(model);
  auto made = make_model(config, sample, classes);
  config.check_all_used();
  return made;
}

std::string error_of(const std::string& model, const Shape& sample, std::int64_t classes) {
  return user_error([&] { make(model, sample, classes); });
}

std::int64_t parameters(Model& model) {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : specs_of(model, DType::float32))
    if (spec.role == ParameterRole::trainable) total += spec.type.shape.elements();
  return total;
}

std::int64_t shipped(const std::string& name, const Shape& sample, std::int64_t classes) {
  const Config config = Config::load(std::string(PLEXAURA_SOURCE) + "/models/" + name);
  return parameters(*make_model(config, sample, classes));
}

}  // namespace

TEST_CASE("the YAML files of the zoo give the numbers of parameters that they name") {
  CHECK(shipped("iris.yaml", {4}, 3) == (4 + 1) * 30 + (30 + 1) * 20 + (20 + 1) * 3);
  CHECK(shipped("mnist_mlp.yaml", {1, 28, 28}, 10) == 535'818);
  CHECK(shipped("mnist_autoencoder.yaml", {1, 28, 28}, 10) == 419'120);
  CHECK(shipped("mnist_cnn.yaml", {1, 28, 28}, 10) == 690'590);
  CHECK(shipped("mnist_vit.yaml", {1, 28, 28}, 10) == 138'890);
  CHECK(shipped("mnist_lstm.yaml", {1, 28, 28}, 10) == 82'186);
  CHECK(shipped("resnet18.yaml", {3, 224, 224}, 1000) == 11'689'512);
  CHECK(shipped("resnet34.yaml", {3, 224, 224}, 1000) == 21'797'672);
  CHECK(shipped("resnet50.yaml", {3, 224, 224}, 1000) == 25'557'032);
  CHECK(shipped("resnet101.yaml", {3, 224, 224}, 1000) == 44'549'160);
  CHECK(shipped("resnet152.yaml", {3, 224, 224}, 1000) == 60'192'808);
}

TEST_CASE("a model that no memory can hold is refused before anything is made") {
  const std::string text = error_of("  name: mlp\n  hidden: [1000000, 1000000]\n", {4}, 3);
  CHECK(
      text.starts_with("x.yaml:2:9: the model needs 8000.1 GB of memory for its parameters and there are "));
  CHECK(text.ends_with("the largest is 'fc2.weight', float32[1000000,1000000]; make the model smaller"));
  CHECK(contains(
      error_of("  name: convnet\n  layers:\n    - {type: conv, channels: 16777216, kernel: 4096, "
               "padding: 4096}\n    - {type: conv, channels: 16777216, kernel: 4096}\n",
               {1, 8, 8}, 3),
      "x.yaml:5:30: model.layers[1].channels is '16777216'; it must be a whole number >= 1 and <= 2048"));
}

TEST_CASE("an mlp has its widths, names and place") {
  const auto model = make("  name: mlp\n  hidden: [30, 20]\n", {4}, 3);
  const auto specs = specs_of(*model, DType::float64);
  REQUIRE(specs.size() == 6);
  CHECK(specs[0].name == "fc1.weight");
  CHECK(specs[0].type.shape == Shape{30, 4});
  CHECK(specs[5].name == "fc3.bias");
  Graph graph;
  const Node y = (*model)(graph.input("x", {DType::float64, {2, 4}}));
  CHECK(y.shape() == Shape{2, 3});
  CHECK(to_string(graph.record(y.id()).origin) == "x.yaml:2:9 (fc3)");
}

TEST_CASE("a model from C++ has the lines of its caller") {
  Mlp model({{4}, 3}, {.hidden = {5}});
  specs_of(model, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 5}});
  const int line = __LINE__ + 1;
  const std::string text = user_error([&] { model(x); });
  CHECK(contains(
      text, "make_model_test.cpp:" + std::to_string(line) + " (fc1): matmul(float32[2,5], float32[5,4])"));
}

TEST_CASE("standardise and sigmoid outputs are options of the mlp") {
  const auto model = make(
      "  name: mlp\n  hidden: [5]\n  standardise: true\n  outputs: sigmoid\n  activation: sigmoid\n", {4}, 3);
  ParameterStore store = make_store(*model, DType::float64, 1);
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float64, {1, 4}});
  const Node y = (*model)(x);
  const Tensor a = Tensor::of<double>({1, 4}, {1, 2, 3, 4});
  const Tensor b = Tensor::of<double>({1, 4}, {10, 20, 30, 40});
  const auto of_a = run_graph(graph, store, {y}, {{"x", a}})[0].to_doubles();
  const auto of_b = run_graph(graph, store, {y}, {{"x", b}})[0].to_doubles();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(of_a[i] == doctest::Approx(of_b[i]).epsilon(1e-4));
    CHECK(of_a[i] > 0);
    CHECK(of_a[i] < 1);
  }
}

TEST_CASE("a list of layers that is empty is told so at its place") {
  CHECK(error_of("  name: convnet\n  layers: []\n", {4}, 3) ==
        "x.yaml:3:11: model.layers is empty; give at least the layer that makes the outputs");
}

TEST_CASE("a list of layers infers sizes, numbers names by kind, and gives each node its layer's place") {
  const auto model = make(
      "  name: convnet\n"
      "  layers:\n"
      "    - {type: conv, channels: 4, kernel: 3, padding: 1, bias: false}\n"
      "    - {type: batch_norm}\n"
      "    - {type: relu}\n"
      "    - {type: avg_pool, kernel: 2}\n"
      "    - {type: conv, channels: 6, kernel: 1, groups: 2, name: mixer}\n"
      "    - {type: tanh}\n"
      "    - {type: global_avg_pool}\n"
      "    - {type: dropout, p: 0.1}\n"
      "    - {type: linear}\n",
      {2, 8, 8}, 7);
  const auto specs = specs_of(*model, DType::float32);
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                          "bn1.running_var", "mixer.weight", "mixer.bias", "fc1.weight",
                                          "fc1.bias"});
  CHECK(specs[5].type.shape == Shape{6, 2, 1, 1});
  CHECK(specs[7].type.shape == Shape{7, 6});
  Graph graph;
  const Node y = (*model)(graph.input("x", {DType::float32, {3, 2, 8, 8}}));
  CHECK(to_string(graph.record(y.id()).origin) == "x.yaml:12:7 (fc1)");
}

TEST_CASE("the summary shows the model as it trains") {
  const auto model = make(
      "  name: convnet\n"
      "  layers:\n"
      "    - {type: conv, channels: 6, kernel: 3}\n"
      "    - {type: batch_norm}\n"
      "    - {type: dropout, p: 0.1}\n"
      "    - {type: flatten}\n"
      "    - {type: linear}\n",
      {2, 8, 8}, 7);
  std::istringstream lines(summary(*model));
  std::map<std::string, std::string> rows;
  for (std::string name, line; std::getline(lines, line);) {
    std::istringstream(line) >> name;
    rows[name] = line;
  }
  const auto shows = [&](const char* name, const char* what) {
    return rows[name].find(what) != std::string::npos;
  };
  CHECK(shows("bn1", "  moments, normalise  "));
  CHECK(shows("bn1", "  [6,6,6]  "));
  CHECK(shows("dropout1", "  dropout  "));
  CHECK(rows.contains("fc1"));
}

TEST_CASE("the summary's total counts frozen parameters, as its rows do") {
  PartlyFrozen model;
  const std::string text = summary(model);
  CHECK(text.find(" 15\n") != std::string::npos);
  CHECK(text.find("\n15 parameters (3 of them frozen), 0 elements of buffers; ") != std::string::npos);
}

TEST_CASE("the summary lists ops outside of layers in their order") {
  const auto model = make(
      "  name: mlp\n"
      "  hidden: [5, 6]\n"
      "  activation: tanh\n"
      "  outputs: sigmoid\n",
      {4}, 3);
  std::istringstream lines(summary(*model));
  std::string ops;
  std::string head;
  std::getline(lines, head);
  for (std::string line, layer, op; std::getline(lines, line) && std::istringstream(line) >> layer >> op;)
    ops += layer + " " + op + "\n";
  CHECK(ops.starts_with("fc1 matmul,\n- tanh\nfc2 matmul,\n- tanh\nfc3 matmul,\n- sigmoid\n"));
}

TEST_CASE("residual layers are lists within the list") {
  const auto model = make(
      "  name: convnet\n"
      "  layers:\n"
      "    - type: residual\n"
      "      layers:\n"
      "        - {type: conv, channels: 4, kernel: 3, padding: 1}\n"
      "      shortcut:\n"
      "        - {type: conv, channels: 4, kernel: 1}\n"
      "    - {type: residual, layers: [{type: conv, channels: 4, kernel: 3, padding: 1}]}\n"
      "    - {type: global_avg_pool}\n"
      "    - {type: linear}\n",
      {1, 6, 6}, 3);
  const auto specs = specs_of(*model, DType::float32);
  CHECK(specs[0].name == "residual1.body.conv1.weight");
  CHECK(specs[2].name == "residual1.shortcut.conv1.weight");
  CHECK(specs[4].name == "residual2.body.conv1.weight");
}

TEST_CASE("layers that do not fit are reported with their line, shapes and rule") {
  const std::string missing_flatten =
      "  name: convnet\n"
      "  layers:\n"
      "    - {type: flatten}\n"
      "    - {type: conv, channels: 4, kernel: 3}\n";
  const std::string text = error_of(missing_flatten, {1, 8, 8}, 3);
  CHECK(contains(text, "x.yaml:5:7 (conv1): conv2d(float32[1,64], float32[4,64,3,3]"));

  const std::string too_small =
      "  name: convnet\n"
      "  layers:\n"
      "    - {type: max_pool, kernel: 9}\n";
  CHECK(contains(error_of(too_small, {1, 8, 8}, 3), "x.yaml:4:7 (max_pool1): max_pool2d(float32[1,1,8,8])"));

  const std::string wrong_classes =
      "  name: convnet\n"
      "  layers:\n"
      "    - {type: linear, units: 4}\n";
  CHECK(contains(error_of(wrong_classes, {8}, 3),
                 "x.yaml:4:7 (fc1): the model's output for one sample is [1,4] and the data has 3 classes"));

  const std::string no_sum =
      "  name: convnet\n"
      "  layers:\n"
      "    - type: residual\n"
      "      layers: [{type: conv, channels: 4, kernel: 3}]\n";
  const std::string error = error_of(no_sum, {4, 8, 8}, 3);
  CAPTURE(error);
  CHECK(contains(error, "x.yaml:5:16 (residual1.body.conv1): "));
  CHECK(contains(error, "a residual block adds its body, [1,4,6,6], to its shortcut, [1,4,8,8]; give both"));
}

TEST_CASE("keys that are wrong are reported with line, column and the nearest one") {
  CHECK(error_of("  name: mpl\n  hidden: [3]\n", {4}, 3) ==
        "x.yaml:2:9: model.name is 'mpl'; it must be one of convnet, convnext, mlp, mobilenet_v2, resnet, "
        "unet, vgg (did you mean 'mlp'?)");
  CHECK(contains(error_of("  name: mlp\n  hidden: [3]\n  activatoin: relu\n", {4}, 3),
                 "x.yaml:4:3: unknown key 'activatoin' in model; did you mean 'activation'?"));
  CHECK(contains(
      error_of("  name: convnet\n  layers:\n    - {type: cnov, channels: 4, kernel: 3}\n", {1, 8, 8}, 3),
      "x.yaml:4:14: model.layers[0].type is 'cnov'"));
  CHECK(contains(
      error_of("  name: convnet\n  layers:\n    - {type: conv, channels: 4, kernle: 3}\n", {1, 8, 8}, 3),
      "kernle"));
  CHECK(
      contains(error_of("  name: convnet\n  layers:\n    - {type: conv, channels: 4, kernel: 3, groups: 3}\n",
                        {6, 8, 8}, 3),
               "x.yaml:4:52: model.layers[0].groups is 3, which must divide the 6 channels"));
  CHECK(contains(
      error_of("  name: convnet\n  layers:\n    - {type: linear, name: a}\n    - {type: linear, name: a}\n",
               {4}, 3),
      "x.yaml:5:28: model.layers[1].name is 'a', as is that of a layer before"));
  for (const std::string name : {"my layer", "a.b", "", "größer", "a/b"})
    CHECK(contains(
        error_of("  name: convnet\n  layers:\n    - {type: linear, name: \"" + name + "\"}\n", {4}, 3),
        "x.yaml:4:28: model.layers[0].name is '" + name +
            "'; use only letters and digits of ASCII, '_' and '-'"));
  CHECK(contains(error_of("  name: resnet\n  depth: 51\n", {3, 64, 64}, 3),
                 "x.yaml:3:10: model.depth is '51'"));
  CHECK(contains(error_of("  name: resnet\n  depth: 50\n  stages: [1]\n", {3, 64, 64}, 3), "x.yaml:3:10"));
  CHECK(contains(
      error_of("  name: resnet\n  depth: 50\n  block: basic\n", {3, 64, 64}, 3),
      "x.yaml:4:10: model.block has no effect here, because model.stages is not given; remove it, or give "
      "model.stages"));
  CHECK(contains(error_of("  name: resnet\n  depth: 50\n", {784}, 3),
                 "x.yaml:2:9: model.name is resnet, which takes images"));
}

TEST_CASE("a key of a layer without effect is reported before what follows from it") {
  const std::string text = error_of(
      "  name: convnet\n  layers:\n    - {type: conv, channels: 4, kernel: 3, units: 3}\n    - {type: "
      "flatten}\n",
      {1, 6, 6}, 3);
  CHECK(contains(text,
                 "model.layers[0].units has no effect here, because model.layers[0].type is conv; remove it, "
                 "or choose linear"));
}

TEST_CASE("a ResNet can be described by its stages") {
  const auto model = make("  name: resnet\n  stages: [1, 2]\n  block: basic\n  width: 16\n", {3, 32, 32}, 5);
  const auto specs = specs_of(*model, DType::float32);
  CHECK(specs.back().type.shape == Shape{5});
  CHECK(std::ranges::find(specs, "layer2.1.bn2.bias", &ParameterSpec::name) != specs.end());
  CHECK(std::ranges::find(specs, "layer3.0.conv1.weight", &ParameterSpec::name) == specs.end());
}

TEST_CASE("losses are means over the samples, and hits are counted") {
  const Tensor outputs = Tensor::of<double>({2, 3}, {0, 1, 0, 2, 0, 0});
  const Tensor labels = Tensor::of<std::int64_t>({2}, {1, 2});
  ParameterStore store(std::vector<ParameterSpec>{});
  const auto run = [&](Loss loss) {
    Mlp model({{4}, 3, loss}, {});
    Graph graph;
    const LossOutputs built =
        build_loss(model, graph.input("y", {DType::float64, {2, 3}}), graph.input("t", {DType::int64, {2}}));
    CHECK(built.metrics.size() == 1);
    const auto found =
        run_graph(graph, store, {built.loss, built.metrics[0].sum}, {{"y", outputs}, {"t", labels}});
    CHECK(found[1].to_doubles() == std::vector<double>{1});
    return found[0].to_doubles()[0];
  };
  CHECK(run(Loss::squared_error) == doctest::Approx((0 + 4 + 1) / 2.0));
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  CHECK(run(Loss::binary_cross_entropy) ==
        doctest::Approx((4 * softplus(0) + softplus(1) - 1 + softplus(2)) / 2));
  const double first = std::log(2 + std::exp(1.0)) - 1;
  const double second = std::log(std::exp(2.0) + 2);
  CHECK(run(Loss::softmax_cross_entropy) == doctest::Approx((first + second) / 2));

  Mlp wide({{4}, 6}, {});
  Graph graph;
  CHECK(build_loss(wide, graph.input("y", {DType::float64, {2, 6}}), graph.input("t", {DType::int64, {2}}))
            .metrics[1]
            .name == "accuracy_top5");
}

TEST_CASE("accuracy_top5 counts a label that is the fifth, and not one that is the sixth") {
  Mlp model({{4}, 7}, {});
  Graph graph;
  const LossOutputs built =
      build_loss(model, graph.input("y", {DType::float64, {3, 7}}), graph.input("t", {DType::int64, {3}}));
  REQUIRE(built.metrics.size() == 2);
  const Tensor outputs = Tensor::of<double>({3, 7}, {7, 6, 5, 4, 3, 2, 1,  //
                                                     1, 2, 3, 4, 5, 6, 7,  //
                                                     3, 7, 1, 5, 2, 6, 4});
  ParameterStore store(std::vector<ParameterSpec>{});
  const auto hits = [&](std::int64_t first, std::int64_t second, std::int64_t third) {
    const Tensor labels = Tensor::of<std::int64_t>({3}, {first, second, third});
    return run_graph(graph, store, {built.metrics[1].sum}, {{"y", outputs}, {"t", labels}})[0]
        .to_doubles()[0];
  };
  CHECK(hits(4, 2, 0) == 3);  // every fifth
  CHECK(hits(5, 1, 4) == 0);  // every sixth
  CHECK(hits(4, 1, 0) == 2);
}

}  // namespace plexaura::testing::make_model_test

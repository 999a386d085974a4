#include "models/zoo/resnet.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "models/zoo/residual_block.h"
#include "models/zoo/summary.h"
#include "tests/models/zoo/specs.h"
#include "tests/support/error_text.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::resnet_test {

namespace {

ModelInfo photos(std::int64_t classes = 1000, std::int64_t side = 64) { return {{3, side, side}, classes}; }

std::int64_t parameters(std::int64_t depth) {
  ResNet net(photos(), ResNetOptions::of_depth(depth));
  return trainable_elements(net);
}

std::int64_t count_ops(const Graph& graph, std::string_view name) {
  std::int64_t count = 0;
  for (NodeId id = 0; id < graph.size(); ++id) count += graph.record(id).op->name() == name;
  return count;
}

}  // namespace

TEST_CASE("ResNets have the published numbers of parameters") {
  CHECK(parameters(18) == 11'689'512);
  CHECK(parameters(34) == 21'797'672);
  CHECK(parameters(50) == 25'557'032);
  CHECK(parameters(101) == 44'549'160);
  CHECK(parameters(152) == 60'192'808);
  CHECK(user_error([] { ResNetOptions::of_depth(20); }).find("18, 34, 50, 101 or 152") != std::string::npos);
}

TEST_CASE("ResNet50's names and shapes are torchvision's") {
  ResNet net(photos(), ResNetOptions::of_depth(50));
  const auto specs = specs_of(net, DType::float32);
  // torchvision has 320 entries, of which 53 are counters num_batches_tracked.
  CHECK(specs.size() == 161 + 2 * 53);
  check_shapes(specs, {
                          {"conv1.weight", {64, 3, 7, 7}},
                          {"bn1.weight", {64}},
                          {"bn1.bias", {64}},
                          {"bn1.running_mean", {64}},
                          {"bn1.running_var", {64}},
                          {"layer1.0.conv1.weight", {64, 64, 1, 1}},
                          {"layer1.0.bn1.weight", {64}},
                          {"layer1.0.bn1.running_mean", {64}},
                          {"layer1.0.conv2.weight", {64, 64, 3, 3}},
                          {"layer1.0.bn2.running_var", {64}},
                          {"layer1.0.conv3.weight", {256, 64, 1, 1}},
                          {"layer1.0.bn3.weight", {256}},
                          {"layer1.0.bn3.bias", {256}},
                          {"layer1.0.downsample.0.weight", {256, 64, 1, 1}},
                          {"layer1.0.downsample.1.weight", {256}},
                          {"layer1.0.downsample.1.bias", {256}},
                          {"layer1.0.downsample.1.running_mean", {256}},
                          {"layer1.0.downsample.1.running_var", {256}},
                          {"layer1.1.conv1.weight", {64, 256, 1, 1}},
                          {"layer1.2.bn3.running_var", {256}},
                          {"layer2.0.conv1.weight", {128, 256, 1, 1}},
                          {"layer2.0.conv2.weight", {128, 128, 3, 3}},
                          {"layer2.0.downsample.0.weight", {512, 256, 1, 1}},
                          {"layer2.3.conv3.weight", {512, 128, 1, 1}},
                          {"layer3.0.conv2.weight", {256, 256, 3, 3}},
                          {"layer3.0.downsample.0.weight", {1024, 512, 1, 1}},
                          {"layer3.5.bn3.bias", {1024}},
                          {"layer4.0.conv1.weight", {512, 1024, 1, 1}},
                          {"layer4.0.downsample.0.weight", {2048, 1024, 1, 1}},
                          {"layer4.2.conv3.weight", {2048, 512, 1, 1}},
                          {"layer4.2.bn3.running_mean", {2048}},
                          {"fc.weight", {1000, 2048}},
                          {"fc.bias", {1000}},
                      });
  std::set<std::string> names;
  for (const ParameterSpec& spec : specs) {
    names.insert(spec.name);
    const bool running = spec.name.find(".running_") != std::string::npos;
    CHECK((spec.role == ParameterRole::buffer) == running);
  }
  for (const char* absent : {"layer1.1.downsample.0.weight", "layer1.3.conv1.weight", "layer3.6.conv1.weight",
                             "layer4.3.conv1.weight", "conv1.bias", "layer1.0.conv1.bias"})
    CHECK_FALSE(names.contains(absent));
}

TEST_CASE("ResNet18 has basic blocks and a shortcut without convolution in its first stage") {
  ResNet net(photos(), ResNetOptions::of_depth(18));
  const auto specs = specs_of(net, DType::float32);
  CHECK(specs.size() == 62 + 2 * 20);
  CHECK(spec_named(specs, "layer2.0.downsample.0.weight").type.shape == Shape{128, 64, 1, 1});
  CHECK(std::ranges::find(specs, "layer1.0.downsample.0.weight", &ParameterSpec::name) == specs.end());
  CHECK(std::ranges::find(specs, "layer1.0.conv3.weight", &ParameterSpec::name) == specs.end());
}

TEST_CASE("convolutions start He-normal over their fan-out, the last scale of each block at zero") {
  ResNet net(photos(), ResNetOptions::of_depth(18));
  const auto specs = specs_of(net, DType::float32);
  const Initialiser he = Initialiser::he_normal_fan_out();
  const Initialiser conv = spec_named(specs, "layer3.1.conv2.weight").initialiser;
  CHECK(conv.kind == he.kind);
  CHECK(conv.fan == he.fan);
  CHECK(conv.value == he.value);
  CHECK(spec_named(specs, "layer3.1.bn2.weight").initialiser.value == 0);
  CHECK(spec_named(specs, "layer3.1.bn1.weight").initialiser.value == 1);
  CHECK(spec_named(specs, "layer3.0.downsample.1.weight").initialiser.value == 1);

  ResNetOptions options = ResNetOptions::of_depth(18);
  options.zero_init_residual = false;
  ResNet plain(photos(), options);
  CHECK(spec_named(specs_of(plain, DType::float32), "layer3.1.bn2.weight").initialiser.value == 1);
}

TEST_CASE("every block adds its input and has ReLU between its convolutions") {
  ResNet net(photos(10), ResNetOptions::of_depth(50));
  specs_of(net, DType::float32);
  Graph graph(Mode::inference);
  const Node y = net(graph.input("x", {DType::float32, {2, 3, 64, 64}}));
  CHECK(y.shape() == Shape{2, 10});
  CHECK(count_ops(graph, "conv2d") == 53);
  CHECK(count_ops(graph, "normalise") == 53);
  CHECK(count_ops(graph, "relu") == 1 + 3 * 16);
  // Residual additions, the bias of fc, and the additions of epsilon.
  CHECK(count_ops(graph, "add") == 16 + 1 + 53);
  CHECK(count_ops(graph, "max_pool2d") == 1);
}

TEST_CASE("the stride is on the 3x3 convolution, and stages halve the image") {
  ResNet net(photos(10), ResNetOptions::of_depth(50));
  specs_of(net, DType::float32);
  Graph graph(Mode::inference);
  net(graph.input("x", {DType::float32, {1, 3, 64, 64}}));
  const auto output_of = [&](std::string_view scope) {
    Shape shape;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph.record(id).origin.scope == scope) shape = graph.record(id).types[0].shape;
    return shape;
  };
  CHECK(output_of("maxpool") == Shape{1, 64, 16, 16});
  CHECK(output_of("layer2.0.conv1") == Shape{1, 128, 16, 16});
  CHECK(output_of("layer2.0.conv2") == Shape{1, 128, 8, 8});
  CHECK(output_of("layer4.2") == Shape{1, 2048, 2, 2});
}

TEST_CASE("a block that starts as the identity is the identity on what is positive") {
  ResidualBlock block({.in = 4, .width = 4, .bottleneck = false});
  ParameterStore store = make_store(block, DType::float64, 5);
  Graph graph(Mode::train);
  const Tensor x = Tensor::of<double>({1, 4, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Node input = graph.input("x", {DType::float64, x.shape()});
  CHECK(run_graph(graph, store, {block(input)}, {{"x", x}})[0].to_doubles() == x.to_doubles());
}

TEST_CASE("every parameter of a ResNet has a gradient, through the global pooling too") {
  ResNet net(photos(10), {.stages = {1, 1}, .width = 8});
  ParameterStore store = make_store(net, DType::float32);
  Graph graph(Mode::train);
  const Node x = graph.input("x", {DType::float32, {2, 3, 32, 32}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  const auto outputs = training_outputs(graph, build_loss(net, net(x), labels), store, 2);
  const auto gradients =
      std::ranges::count_if(outputs, [](const auto& output) { return !output.gradient_of.empty(); });
  CHECK(static_cast<std::size_t>(gradients) == store.specs().size());
  CHECK(graph.updates().size() == 2 * 9);
  CHECK(count_ops(graph, "weighted_sum") == 2 * 9);
  CHECK(count_ops(graph, "sub") == 0);
}

TEST_CASE("the summary lists layers, shapes and counts, and keeps the model's dtype") {
  ResNet net(photos(10), ResNetOptions::of_depth(50));
  specs_of(net, DType::float64);
  const std::string text = summary(net);
  const auto line = text.substr(text.find("layer1.0.conv2"),
                                text.find('\n', text.find("layer1.0.conv2")) - text.find("layer1.0.conv2"));
  CHECK(line.find("conv2d") != std::string::npos);
  CHECK(line.find("[64,16,16]") != std::string::npos);
  CHECK(line.find("36,864") != std::string::npos);
  CHECK(text.find("23,528,522 parameters, 53,120 elements of buffers; samples [3,64,64], 10 classes") !=
        std::string::npos);
  CHECK(net.dtype() == DType::float64);
}

}  // namespace plexaura::testing::resnet_test

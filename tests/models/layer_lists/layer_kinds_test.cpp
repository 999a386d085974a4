#include "models/layer_lists/layer_kinds.h"

#include <cmath>
#include <doctest/doctest.h>
#include <iterator>
#include <map>

#include "core/ops/slice.h"
#include "core/vm/function.h"
#include "models/layer_lists/layer_list.h"
#include "models/layers/normalisation.h"
#include "models/zoo/sample.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::layer_kinds_test {

namespace {

// A net that is made of a YAML list for samples of a shape, and its output for one sample.
struct Net {
  Config config;
  Graph graph{Mode::inference};
  Node x;
  Node y;
  std::unique_ptr<layers::Sequential> layers;

  Net(const std::string& list, const Shape& sample, DType dtype = DType::float32)
      : config(Config::parse("layers: " + list + "\n", "x.yaml")),
        x(one_sample(graph, sample,
                     list.find("embedding") == std::string::npos ? DType::float32 : DType::int64)),
        y(x) {
    layers = LayerList(7, Initialiser::lecun_uniform()).make(config.root().sections("layers"), y, "");
    config.check_all_used();
    specs_of(*layers, dtype);
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const ParameterSpec& spec : specs_of(*layers, DType::float32)) names.push_back(spec.name);
    return names;
  }
};

std::string error_of(const std::string& list, const Shape& sample) {
  return user_error([&] { Net(list, sample); });
}

struct Example {
  std::string keys;
  Shape sample;
  Shape output;
  std::size_t parameters = 0;
};

const std::map<std::string, Example>& examples() {
  const Shape image{4, 6, 6};
  const Shape steps{5, 8};
  static const std::map<std::string, Example> all{
      {"conv", {"channels: 6, kernel: 3, groups: 2", image, {1, 6, 4, 4}, 2}},
      {"conv_transpose", {"channels: 6, kernel: 2, stride: 2, output_padding: 1", image, {1, 6, 13, 13}, 2}},
      {"linear", {"units: 3, bias: false", steps, {1, 5, 3}, 1}},
      {"max_pool", {"kernel: 2", image, {1, 4, 3, 3}}},
      {"avg_pool", {"kernel: 2, stride: 1", image, {1, 4, 5, 5}}},
      {"global_avg_pool", {"", image, {1, 4}}},
      {"relu", {"", image, {1, 4, 6, 6}}},
      {"sigmoid", {"", image, {1, 4, 6, 6}}},
      {"tanh", {"", image, {1, 4, 6, 6}}},
      {"gelu", {"", image, {1, 4, 6, 6}}},
      {"silu", {"", image, {1, 4, 6, 6}}},
      {"elu", {"", image, {1, 4, 6, 6}}},
      {"leaky_relu", {"", image, {1, 4, 6, 6}}},
      {"flatten", {"", image, {1, 144}}},
      {"dropout", {"p: 0.1", image, {1, 4, 6, 6}}},
      {"batch_norm", {"momentum: 0.2", image, {1, 4, 6, 6}, 4}},
      {"frozen_batch_norm", {"epsilon: 0.1", image, {1, 4, 6, 6}, 4}},
      {"standardise", {"", steps, {1, 5, 8}}},
      {"layer_norm", {"", steps, {1, 5, 8}, 2}},
      {"rms_norm", {"", steps, {1, 5, 8}, 1}},
      {"group_norm", {"groups: 2", image, {1, 4, 6, 6}, 2}},
      {"instance_norm", {"", image, {1, 4, 6, 6}}},
      {"residual", {"layers: [{type: layer_norm}], activation: none", steps, {1, 5, 8}, 2}},
      {"upsample", {"scale: 2, mode: linear", image, {1, 4, 12, 12}}},
      {"tokens", {"", image, {1, 36, 4}}},
      {"reshape", {"shape: [12, 12]", image, {1, 12, 12}}},
      {"positions", {"", steps, {1, 5, 8}, 1}},
      {"rnn", {"units: 3", steps, {1, 5, 3}, 4}},
      {"lstm", {"units: 3, depth: 2, dropout: 0.1", steps, {1, 5, 3}, 8}},
      {"gru", {"units: 3", steps, {1, 5, 3}, 4}},
      {"transformer_encoder", {"heads: 2, depth: 2, norm_first: true, causal: true", steps, {1, 5, 8}, 26}},
      {"last_step", {"", steps, {1, 8}}},
      {"mean_of_steps", {"", steps, {1, 8}}},
      {"embedding", {"units: 3, deviation: 0.02", {5}, {1, 5, 3}, 1}},
  };
  return all;
}

}  // namespace

TEST_CASE("each type of layer makes its output from a sample") {
  CHECK(examples().size() == layer_kinds().size());
  for (const LayerKind& kind : layer_kinds()) {
    CAPTURE(kind.type);
    REQUIRE(examples().contains(kind.type));
    const Example& example = examples().at(kind.type);
    const Net net("[{type: " + kind.type + (example.keys.empty() ? "" : ", ") + example.keys + "}]",
                  example.sample);
    CHECK(net.y.shape() == example.output);
    CHECK(net.parameters().size() == example.parameters);
  }
}

TEST_CASE("a convolution goes over as many axes as a sample has after its channels") {
  const std::string conv =
      "[{type: conv, channels: 6, kernel: 3}, {type: conv_transpose, channels: 2, kernel: 2}]";
  CHECK(Net(conv, {4, 9}).y.shape() == Shape{1, 2, 8});
  CHECK(Net(conv, {4, 9, 8}).y.shape() == Shape{1, 2, 8, 7});
  CHECK(Net(conv, {4, 9, 8, 7}).y.shape() == Shape{1, 2, 8, 7, 6});
}

TEST_CASE("a stack of transformer layers has PyTorch's names below its own") {
  const std::vector<std::string> names =
      Net("[{type: transformer_encoder, heads: 2, norm_first: true}]", {5, 8}).parameters();
  CHECK(names.front() == "encoder1.layers.0.self_attn.in_proj_weight");
  CHECK(names.back() == "encoder1.norm.bias");
  CHECK(Net("[{type: transformer_encoder, heads: 2}]", {5, 8}).parameters().back() ==
        "encoder1.layers.0.norm2.bias");
}

TEST_CASE("a bidirectional recurrent layer has the values and the weights of two directions") {
  const Net net("[{type: gru, units: 3, bidirectional: true}]", {5, 8});
  CHECK(net.y.shape() == Shape{1, 5, 6});
  CHECK(net.parameters().size() == 8);
  CHECK(net.parameters().back() == "gru1.bias_hh_l0_reverse");
}

TEST_CASE("a step of a causal encoder does not see later steps") {
  for (const bool causal : {false, true}) {
    const Net net(std::string("[{type: transformer_encoder, heads: 2, causal: ") +
                      (causal ? "true}, " : "false}, ") + "{type: reshape, shape: [40]}]",
                  {5, 8});
    ParameterStore store = make_store(*net.layers, DType::float32, 1);
    const auto first_steps = [&](double last) {
      Tensor x = pattern({1, 5, 8});
      x.as<double>()[39] = last;
      std::vector<double> y =
          run_graph(net.graph, store, {net.y}, {{"x", x.cast(DType::float32)}})[0].to_doubles();
      y.resize(32);
      return y;
    };
    CHECK((first_steps(0) == first_steps(5)) == causal);
  }
}

TEST_CASE("a layer that keeps the order lets no step see later ones") {
  for (const LayerKind& kind : layer_kinds()) {
    if (!kind.keeps_order || kind.type == "embedding") continue;
    CAPTURE(kind.type);
    const std::string keys = examples().at(kind.type).keys;
    const Net net("[{type: " + kind.type + (keys.empty() ? "" : ", ") + keys + "}]", {5, 8});
    ParameterStore store = make_store(*net.layers, DType::float32, 1);
    const auto first_steps = [&](double last) {
      Tensor x = pattern({1, 5, 8});
      x.as<double>()[39] = last;
      std::vector<double> y =
          run_graph(net.graph, store, {net.y}, {{"x", x.cast(DType::float32)}})[0].to_doubles();
      y.resize(y.size() / 5 * 4);
      return y;
    };
    CHECK(first_steps(0) == first_steps(5));
  }
}

TEST_CASE("a layer that keeps the order computes positions that come one by one as in the whole sequence") {
  constexpr std::int64_t sequences = 2, length = 5;
  for (const LayerKind& kind : layer_kinds()) {
    if (!kind.keeps_order) continue;
    CAPTURE(kind.type);
    const std::string keys = examples().at(kind.type).keys;
    const bool is_text = kind.type == "embedding";
    const Net net("[{type: " + kind.type + (keys.empty() ? "" : ", ") + keys + "}]",
                  is_text ? Shape{length} : Shape{length, 8}, DType::float64);
    const auto incremental = net.layers->incremental(sequences, length);
    REQUIRE(incremental != nullptr);
    std::vector<ParameterSpec> specs = specs_of(*net.layers, DType::float64);
    std::ranges::move(specs_of(*incremental, DType::float64, "incremental"), std::back_inserter(specs));
    ParameterStore store(specs, 1);

    const Tensor x = is_text ? Tensor::of<std::int64_t>({sequences, length}, {0, 1, 2, 3, 4, 6, 5, 4, 3, 2})
                             : pattern({sequences, length, 8});
    Graph whole(Mode::inference);
    const Tensor expected =
        run_graph(whole, store, {(*net.layers)(whole.input("x", x.type()))}, {{"x", x}})[0];

    // Returns step t of both sequences.
    const auto step = [&](const Tensor& all, std::int64_t t) {
      Graph graph(Mode::inference);
      const Node row = slice(graph.input("x", all.type()), {.axis = 1, .start = t, .stop = t + 1});
      return evaluate(row, {{"x", all}}, test_backend());
    };
    Graph graph(Mode::inference);
    const Node next = graph.input("x", step(x, 0).type());
    const Node position = graph.input("position", {DType::int64, {}});
    Function of_next(graph, {next, position}, {incremental->next(next, position)}, test_backend(), &store);
    for (int again = 0; again < 2; ++again)  // the second sequences start with the buffers of the first ones
      for (std::int64_t t = 0; t < length; ++t) {
        const Tensor found = of_next(step(x, t), Tensor::scalar(t))[0];
        CHECK(found.shape() == step(expected, t).shape());
        check_close(found, step(expected, t).to_doubles(), 1e-12);
      }
  }
}

TEST_CASE("layers that need whole sequences have no incremental form, nor has a net with such a layer") {
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.keeps_order) continue;
    CAPTURE(kind.type);
    const Example& example = examples().at(kind.type);
    const Net net("[{type: " + kind.type + (example.keys.empty() ? "" : ", ") + example.keys + "}]",
                  example.sample);
    CHECK(net.layers->incremental(1, 5) == nullptr);
  }
  const auto has_one = [](const std::string& list) {
    return Net(list, {5, 8}).layers->incremental(1, 5) != nullptr;
  };
  CHECK(has_one("[{type: residual, layers: [{type: linear, units: 8}], shortcut: [{type: tanh}]}]"));
  CHECK(!has_one("[{type: residual, layers: [{type: group_norm, groups: 1}]}]"));
  CHECK(!has_one("[{type: residual, layers: [{type: tanh}], shortcut: [{type: group_norm, groups: 1}]}]"));
  CHECK(!has_one("[{type: transformer_encoder, heads: 2}]"));
  CHECK(layers::LayerNorm({5, 8}).incremental(1, 5) == nullptr);
  CHECK(layers::RmsNorm({5, 8}).incremental(1, 5) == nullptr);
}

TEST_CASE("an embedding has a row for each class, which starts with its deviation") {
  const Net net("[{type: embedding, units: 1000, deviation: 0.5}]", {5});
  ParameterStore store = make_store(*net.layers, DType::float32, 1);
  const Tensor weight = store.read("embedding1.weight");
  CHECK(weight.shape() == Shape{7, 1000});
  double squares = 0;
  for (const double value : weight.to_doubles()) squares += value * value;
  CHECK(std::sqrt(squares / 7000) == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("pieces of sequences and images are where they should be") {
  const auto values_of = [](const std::string& type) {
    const Net net("[{type: " + type + "}]", {2, 3});
    ParameterStore store(std::vector<ParameterSpec>{});
    return run_graph(net.graph, store, {net.y}, {{"x", Tensor::of<float>({1, 2, 3}, {1, 2, 3, 5, 7, 9})}})[0]
        .to_doubles();
  };
  CHECK(values_of("last_step") == std::vector<double>{5, 7, 9});
  CHECK(values_of("mean_of_steps") == std::vector<double>{3, 4.5, 6});
  CHECK(values_of("tokens") == std::vector<double>{1, 5, 2, 7, 3, 9});
}

TEST_CASE("layers whose keys do not fit the sample are refused at their place") {
  CHECK(error_of("[{type: lstm, units: 3}]", {1, 6, 6}) ==
        "x.yaml:1:17: layers[0].type is lstm, which takes a sample [steps, features] with at most 16777216 "
        "features, and it gets [1,6,6]; a layer reshape or tokens can make one");
  CHECK(error_of("[{type: gru, units: 3, dropout: 0.5}]", {5, 8}) ==
        "x.yaml:1:41: layers[0].dropout has no effect with a depth of 1, because it acts between two layers; "
        "remove it, or add a layer dropout");
  CHECK(error_of("[{type: transformer_encoder, heads: 3}]", {5, 8}) ==
        "x.yaml:1:45: layers[0].heads is 3, which must divide the 8 features evenly");
  CHECK(error_of("[{type: group_norm, groups: 3}]", {4, 6}) ==
        "x.yaml:1:37: layers[0].groups is 3, which must divide the 4 channels evenly");
  CHECK(
      error_of("[{type: reshape, shape: [7, 7]}]", {1, 6, 6}) ==
      "x.yaml:1:33: layers[0].shape has more elements than the 36 that the layer gets; they must be equally "
      "many");
  CHECK(error_of("[{type: reshape, shape: [16777216, 16777216, 16777216]}]", {1, 6, 6})
            .find("has more elements") != std::string::npos);
  CHECK(error_of("[{type: tanh, units: 3}]", {4}).find("or choose linear, rnn, lstm, gru or embedding") !=
        std::string::npos);
}

TEST_CASE("the settings of layers that weights of earlier versions name have no new keys") {
  const Net net(
      "[{type: conv, channels: 4, kernel: 3}, {type: batch_norm}, {type: residual, layers: [{type: relu}]}, "
      "{type: "
      "max_pool, kernel: 2}, {type: avg_pool, kernel: 2}, {type: dropout}, {type: flatten}, {type: linear}]",
      {1, 8, 8});
  std::string keys;
  for (const auto& [key, value] : net.config.values()) keys += key.substr(key.find('.') + 1) + ' ';
  CHECK(keys ==
        "bias channels dilation groups kernel name padding stride type "
        "epsilon momentum name synchronised type layers[0].name layers[0].type name type "
        "kernel name padding stride type count_include_pad kernel name padding stride type name p type name "
        "type "
        "bias name type units ");
}

}  // namespace plexaura::testing::layer_kinds_test

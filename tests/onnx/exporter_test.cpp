#include "onnx/exporter.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>

#include "onnx/format/proto.h"
#include "onnx/runner.h"

#include "core/base/error.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/logic.h"
#include "core/ops/matmul.h"
#include "core/ops/slice.h"
#include "core/ops/special_functions.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "core/vm/function.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::exporter_test {

namespace {

using onnx::export_graph;
using testing::test_backend;

const ParameterStore no_parameters(std::vector<ParameterSpec>{});

Tensor numbers(Shape shape, std::uint64_t seed = 1) {
  testing::Random random(seed);
  return random.tensor({DType::float32, std::move(shape)}, -1, 1);
}

std::vector<std::string> ops_of(const std::string& bytes) {
  std::vector<std::string> ops;
  for (const onnx::NodeProto& node : onnx::parse_model(bytes).graph.nodes) ops.push_back(node.op);
  return ops;
}

std::vector<Tensor> run_file(const std::string& bytes, const std::map<std::string, Tensor>& inputs) {
  onnx::FileModel model(bytes, "exported.onnx");
  ParameterStore store = model.make_store();
  return onnx::Runner(model, store, test_backend())(inputs);
}

// Returns the files with weights of exports to `file`.
std::vector<std::filesystem::path> weights_beside(const std::filesystem::path& file) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(file.filename().string() + ".") && name.ends_with(".data"))
      found.push_back(entry.path());
  }
  return found;
}

ParameterStore store_of(const std::map<std::string, Tensor>& values,
                        const std::set<std::string>& buffers = {}) {
  std::vector<ParameterSpec> specs;
  for (const auto& [name, value] : values)
    specs.push_back({name, value.type(),
                     buffers.contains(name) ? ParameterRole::buffer : ParameterRole::trainable,
                     Initialiser::zeros()});
  ParameterStore store(specs);
  for (const auto& [name, value] : values) store.write(name, value);
  return store;
}

}  // namespace

TEST_CASE("parameters are initialisers under their names, and scopes are in the names of nodes") {
  const ParameterStore store = store_of({{"fc.weight", numbers({3, 2})}});
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {4, 2}});
  const Node weight = graph.parameter("fc.weight", {DType::float32, {3, 2}});
  const Graph::Scope scope(graph, "fc");
  const Node y = relu(matmul(x, weight, {.transpose_b = true}));
  const std::string bytes = export_graph(std::vector<onnx::ExportedOutput>{{"logits", y}}, store);

  const onnx::ModelProto model = onnx::parse_model(bytes);
  CHECK(model.opsets.at("") == 18);
  REQUIRE(model.graph.initialisers.size() == 1);
  CHECK(model.graph.initialisers[0].name == "fc.weight");
  CHECK(model.graph.inputs.at(0).name == "x");
  CHECK(model.graph.inputs.at(0).extents == std::vector<std::int64_t>{4, 2});
  CHECK(model.graph.outputs.at(0).name == "logits");
  CHECK(model.graph.outputs.at(0).extents == std::vector<std::int64_t>{4, 3});
  REQUIRE(model.graph.nodes.size() == 2);
  CHECK(model.graph.nodes[0].op == "Gemm");
  CHECK(model.graph.nodes[0].name == "fc/matmul_2");
  CHECK(model.graph.nodes[1].outputs.at(0) == "logits");
}

TEST_CASE("a file computes the same bits as the graph that was exported") {
  ParameterStore store = store_of({{"weight", numbers({2, 3}, 2)}, {"bias", numbers({3}, 3)}});
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {4, 2}});
  const Node weight = graph.parameter("weight", {DType::float32, {2, 3}});
  const Node bias = graph.parameter("bias", {DType::float32, {3}});
  const Node y = tanh(matmul(x, weight) + bias);
  const Tensor samples = numbers({4, 2});
  const std::string bytes = export_graph(std::vector<onnx::ExportedOutput>{{"y", y}}, store);
  CHECK(run_file(bytes, {{"x", samples}})[0] == evaluate(y, {{"x", samples}}, test_backend(), &store));
}

TEST_CASE("every value has its type, also where bools broadcast") {
  Graph graph(Mode::inference);
  const Node a = graph.input("a", {DType::boolean, {3, 1}});
  const Node b = graph.input("b", {DType::boolean, {2}});
  const Node c = graph.input("c", {DType::boolean, {}});
  const std::string bytes =
      export_graph(std::vector<onnx::ExportedOutput>{{"y", where(b, a, c)}}, no_parameters);
  const onnx::GraphProto exported = onnx::parse_model(bytes).graph;
  const auto extents_of = [&](std::string_view op, std::size_t number) {
    for (const onnx::NodeProto& node : exported.nodes)
      if (node.op == op && number-- == 0)
        return std::ranges::find(exported.inner_values, node.outputs[0], &onnx::ValueProto::name)->extents;
    return std::vector<std::int64_t>{-1};
  };
  CHECK(exported.inner_values.size() == 3);
  CHECK(extents_of("Not", 0) == std::vector<std::int64_t>{2});
  CHECK(extents_of("And", 0) == std::vector<std::int64_t>{3, 2});
  CHECK(extents_of("And", 1) == std::vector<std::int64_t>{2});
}

TEST_CASE("batch norm with running moments is one node, and the moments are its initialisers") {
  ParameterStore store = store_of({{"scale", numbers({3}, 2)},
                                   {"shift", numbers({3}, 3)},
                                   {"mean", numbers({3}, 4)},
                                   {"variance", Tensor::of({3}, std::vector{0.5F, 1.0F, 2.0F})}},
                                  {"mean", "variance"});
  Graph graph(Mode::inference);
  const TensorType channels{DType::float32, {3}};
  const Node x = graph.input("x", {DType::float32, {2, 3, 4, 4}});
  const Node y = batch_norm_inference(x, graph.parameter("scale", channels),
                                      graph.parameter("shift", channels), graph.buffer("mean", channels),
                                      graph.buffer("variance", channels), {.epsilon = 1e-3});
  const std::string bytes = export_graph(std::vector<onnx::ExportedOutput>{{"y", y}}, store);
  CHECK(ops_of(bytes) == std::vector<std::string>{"BatchNormalization"});
  const Tensor samples = numbers({2, 3, 4, 4});
  CHECK(run_file(bytes, {{"x", samples}})[0] == evaluate(y, {{"x", samples}}, test_backend(), &store));
}

TEST_CASE("a loop becomes the nodes of its steps") {
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    Graph graph(Mode::inference);
    const Node xs = graph.input("xs", {DType::float32, {5, 2}});
    const Node start = graph.input("start", {DType::float32, {2}});
    const ScanStep loop = scan({xs}, {start},
                               [](const std::vector<Node>& carries, const std::vector<Node>& x) {
                                 const Node next = tanh(carries[0] + x[0]);
                                 return ScanStep{{next}, {next * 2}};
                               },
                               {.reverse = reverse});
    const std::map<std::string, Tensor> inputs{{"xs", numbers({5, 2})}, {"start", numbers({2}, 2)}};
    const std::string bytes =
        export_graph(std::vector<onnx::ExportedOutput>{{"all", loop.outputs[0]}, {"last", loop.carries[0]}},
                     no_parameters);
    const std::vector<std::string> ops = ops_of(bytes);
    CHECK(std::ranges::count(ops, "Tanh") == 5);
    const std::vector<Tensor> found = run_file(bytes, inputs);
    const std::vector<Feed> feeds{{"xs", inputs.at("xs")}, {"start", inputs.at("start")}};
    CHECK(found[0] == evaluate(loop.outputs[0], feeds, test_backend()));
    CHECK(found[1] == evaluate(loop.carries[0], feeds, test_backend()));
  }
}

TEST_CASE("a loop of very many steps is not exported") {
  Graph graph(Mode::inference);
  const Node xs = graph.input("xs", {DType::float32, {50'000, 1}});
  const Node start = graph.input("start", {DType::float32, {1}});
  const ScanStep loop = scan({xs}, {start}, [](const std::vector<Node>& carries, const std::vector<Node>& x) {
    return ScanStep{{tanh(carries[0] + x[0])}, {}};
  });
  const std::string error = testing::user_error([&] {
    export_graph(std::vector<onnx::ExportedOutput>{{"last", loop.carries[0]}}, no_parameters);
  });
  CHECK(error.find("exporter_test.cpp:") != std::string::npos);
  CHECK(error.find("the loop has 50000 steps") != std::string::npos);
}

TEST_CASE("all ops that ONNX does not have are reported at once, with their lines") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {2}});
  const int line = __LINE__ + 1;
  const Node y = erfinv(x) + lgamma(x);
  erfc(x);  // no output needs it
  const Node z = lgamma(y);
  CHECK(testing::user_error([&] {
          export_graph(std::vector<onnx::ExportedOutput>{{"z", z}}, no_parameters);
        }) == fmt::format("these ops have no counterpart in version 18 of ONNX's ops: erfinv "
                          "(tests/onnx/exporter_test.cpp:{0}); lgamma (tests/onnx/exporter_test.cpp:{0}, "
                          "tests/onnx/exporter_test.cpp:{1}); replace them by ops that have one",
                          line, line + 2));
}

TEST_CASE("shifts of bits are exported for the only dtype that both sides have") {
  const Tensor bits = Tensor::of({3}, std::vector<std::uint8_t>{1, 129, 255});
  const Tensor places = Tensor::of({3}, std::vector<std::uint8_t>{1, 2, 7});
  for (const auto shift : {left_shift, right_shift}) {
    Graph graph(Mode::inference);
    const Node y = shift(graph.input("x", bits.type()), graph.input("places", bits.type()));
    const std::string bytes = export_graph(std::vector<onnx::ExportedOutput>{{"y", y}}, no_parameters);
    CHECK(run_file(bytes, {{"x", bits}, {"places", places}})[0] ==
          evaluate(y, {{"x", bits}, {"places", places}}, test_backend()));
  }
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::int64, {3}});
  CHECK(testing::user_error([&] {
          export_graph(std::vector<onnx::ExportedOutput>{{"y", left_shift(x, x)}}, no_parameters);
        }).find("left_shift of int64 (") != std::string::npos);
}

TEST_CASE("an output may be an input, and one value may be two outputs") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {2}});
  const Node y = exp(x);
  const Tensor samples = numbers({2});
  const std::string bytes =
      export_graph(std::vector<onnx::ExportedOutput>{{"a", x}, {"b", y}, {"c", y}}, no_parameters);
  const std::vector<Tensor> found = run_file(bytes, {{"x", samples}});
  CHECK(found[0] == samples);
  CHECK(found[1] == found[2]);
  CHECK(found[1] == evaluate(y, {{"x", samples}}, test_backend()));
}

TEST_CASE("a file appears only if the export succeeds") {
  const testing::TemporaryFolder folder;
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {2}});
  CHECK(!testing::user_error([&] {
           onnx::export_to(folder.path() / "bad.onnx", std::vector<onnx::ExportedOutput>{{"y", erfc(x)}},
                           no_parameters);
         }).empty());
  CHECK(!std::filesystem::exists(folder.path() / "bad.onnx"));
  onnx::export_to(folder.path() / "good.onnx", std::vector<onnx::ExportedOutput>{{"y", exp(x)}},
                  no_parameters);
  CHECK(onnx::FileModel(folder.path() / "good.onnx").outputs() == std::vector<std::string>{"y"});
}

TEST_CASE("parameters may be in a file beside the model, from which they are read again") {
  const testing::TemporaryFolder folder;
  const Tensor weight = numbers({2, 3}, 2);
  ParameterStore store = store_of({{"bias", numbers({3}, 3)}, {"weight", weight}});
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {4, 2}});
  const Node product = matmul(x, graph.parameter("weight", weight.type()));
  const Node y = product + graph.parameter("bias", {DType::float32, {3}});
  const std::vector<onnx::ExportedOutput> outputs{{"y", y}};
  onnx::export_to(folder / "inside.onnx", outputs, store);
  CHECK(weights_beside(folder / "inside.onnx").empty());
  onnx::export_to(folder / "beside.onnx", outputs, store, onnx::WeightsPlace::beside);
  REQUIRE(weights_beside(folder / "beside.onnx").size() == 1);
  CHECK(std::filesystem::file_size(weights_beside(folder / "beside.onnx")[0]) == 4096 + 12);
  onnx::FileModel model(folder / "beside.onnx");
  ParameterStore read = model.make_store();
  CHECK(read.read("weight") == weight);
  const Tensor samples = numbers({4, 2});
  CHECK(onnx::Runner(model, read, test_backend())({{"x", samples}})[0] ==
        evaluate(y, {{"x", samples}}, test_backend(), &store));
  CHECK(!testing::user_error([&] {
           onnx::export_to(folder / "bad.onnx", std::vector<onnx::ExportedOutput>{{"y", erfc(y)}}, store,
                           onnx::WeightsPlace::beside);
         }).empty());
  CHECK(weights_beside(folder / "bad.onnx").empty());
}

TEST_CASE("a model never reads the weights of another export") {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "m.onnx";
  Graph graph(Mode::inference);
  const Node x = graph.input("x", {DType::float32, {4, 2}});
  const std::vector<onnx::ExportedOutput> outputs{
      {"y", matmul(x, graph.parameter("weight", {DType::float32, {2, 3}}))}};
  const Tensor first = numbers({2, 3}, 2);
  const Tensor second = numbers({2, 3}, 3);
  onnx::export_to(file, outputs, store_of({{"weight", first}}), onnx::WeightsPlace::beside);
  onnx::FileModel model(file);

  SUBCASE("of one that ended before the model was written") {
    // The weights are written first.
    const std::filesystem::path moved = folder / "moved.onnx";
    std::filesystem::rename(file, moved);
    std::filesystem::create_directory(file);  // so that the model cannot be written
    CHECK_THROWS(onnx::export_to(file, outputs, store_of({{"weight", second}}), onnx::WeightsPlace::beside));
    std::filesystem::remove(file);
    std::filesystem::rename(moved, file);
    CHECK(onnx::FileModel(file).make_store().read("weight") == first);
  }
  SUBCASE("of a later one, where the model was opened before") {
    onnx::export_to(file, outputs, store_of({{"weight", second}}), onnx::WeightsPlace::beside);
    CHECK(weights_beside(file).size() == 1);
    CHECK_FALSE(testing::user_error([&] { model.make_store(); }).empty());
    CHECK(onnx::FileModel(file).make_store().read("weight") == second);
  }
  SUBCASE("of one without weights beside it") {
    onnx::export_to(file, outputs, store_of({{"weight", second}}));
    CHECK(weights_beside(file).empty());
    CHECK(onnx::FileModel(file).make_store().read("weight") == second);
  }
}

TEST_CASE("graphs that cannot be exported are errors") {
  const auto error_of = [](const std::vector<onnx::ExportedOutput>& outputs) {
    return testing::user_error([&] { export_graph(outputs, no_parameters); });
  };
  Graph graph(Mode::inference);
  Graph other(Mode::inference);
  Graph training;
  const Node x = graph.input("x", {DType::float32, {2}});
  CHECK(error_of({}) == "a model needs an output to be exported; pass one at least");
  CHECK(error_of({{"y", exp(x)}, {"y", log(x)}}) ==
        "two outputs have the name 'y'; each needs a name of its own");
  CHECK(error_of({{"x", exp(x)}}) ==
        "'x' is the name of several inputs, outputs or parameters; in ONNX each needs a name of its own");
  CHECK(error_of({{"y", exp(x)}, {"z", other.input("x", x.type())}}) ==
        "the output 'z' belongs to another graph than 'y'; export the outputs of one graph");
  CHECK(error_of({{"y", training.input("x", x.type())}}) ==
        "the graph was made for training; export a graph of Mode::inference, which has no dropout and reads "
        "the running moments of batch norm");
}

}  // namespace plexaura::exporter_test

#include "onnx/open_batch.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <map>

#include "onnx/exporter.h"
#include "onnx/format/proto.h"
#include "onnx/runner.h"

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::open_batch_test {

namespace {

std::string open(const std::function<Node(const Node&)>& model) {
  const auto exported = [&](std::int64_t samples) {
    const ParameterStore store(std::vector<ParameterSpec>{});
    Graph graph(Mode::inference);
    const Node x = graph.input("x", {DType::float32, {samples, 2, 3}});
    return onnx::export_graph(std::vector<onnx::ExportedOutput>{{"y", model(x)}}, store);
  };
  return onnx::with_open_batch(exported(101), exported(103));
}

const onnx::ValueProto& value_of(const onnx::GraphProto& graph, const std::string& name) {
  return *std::ranges::find(graph.inner_values, name, &onnx::ValueProto::name);
}

// Makes a constant [2, samples, 3] of element(i, sample, j).
Node constant_of(const Node& x, float (*element)(std::int64_t, std::int64_t, std::int64_t)) {
  const std::int64_t samples = x.shape()[0];
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::int64_t j = 0; j < 3; ++j) values.push_back(element(i, sample, j));
  return x.graph().constant(Tensor::of({2, samples, 3}, values));
}

}  // namespace

TEST_CASE("a file with an open batch takes any number of samples") {
  const std::string bytes = open([](const Node& x) {
    const Node rows = reshape(x, {x.shape()[0] * 2, 3});
    return sum(reshape(rows * 2, {x.shape()[0], 6}), 1);
  });
  const onnx::GraphProto graph = onnx::parse_model(bytes).graph;
  CHECK(graph.inputs.at(0).extents == std::vector<std::int64_t>{-1, 2, 3});
  CHECK(graph.outputs.at(0).extents == std::vector<std::int64_t>{-1});
  CHECK(graph.inputs.at(0).open_names == std::map<std::size_t, std::string>{{0, "N"}});
  CHECK(graph.outputs.at(0).open_names == std::map<std::size_t, std::string>{{0, "N"}});
  CHECK(value_of(graph, "reshape_1").extents == std::vector<std::int64_t>{-1, 3});
  CHECK(value_of(graph, "reshape_1").open_names.empty());  // 2 N
  onnx::FileModel model(bytes, "open.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, testing::test_backend());
  for (const std::int64_t samples : {1, 2, 5}) {
    Tensor x(TensorType{DType::float32, Shape{samples, 2, 3}});
    for (float& element : x.as<float>()) element = 1;
    CHECK(run({{"x", x}})[0] ==
          Tensor::of({samples}, std::vector<float>(static_cast<std::size_t>(samples), 12)));
  }
}

TEST_CASE("a value may be repeated for each sample") {
  const std::string bytes = open([](const Node& x) {
    const Node start = broadcast_to(x.graph().constant(Tensor::scalar(3.0F)), {x.shape()[0], 2, 3});
    return start + x;
  });
  onnx::FileModel model(bytes, "open.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, testing::test_backend());
  for (const std::int64_t samples : {1, 4})
    CHECK(run({{"x", Tensor(TensorType{DType::float32, Shape{samples, 2, 3}})}})[0] ==
          Tensor::of({samples, 2, 3}, std::vector<float>(static_cast<std::size_t>(6 * samples), 3)));
}

TEST_CASE("a constant that has the same elements for each sample is repeated when the file runs") {
  const std::string bytes = open([](const Node& x) {
    const Node start = constant_of(
        x, [](std::int64_t i, std::int64_t, std::int64_t j) { return static_cast<float>(10 * i + j); });
    return permute(start, {1, 0, 2}) + x;
  });
  onnx::FileModel model(bytes, "open.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, testing::test_backend());
  for (const std::int64_t samples : {1, 4}) {
    std::vector<float> expected;
    for (std::int64_t sample = 0; sample < samples; ++sample)
      expected.insert(expected.end(), {0, 1, 2, 10, 11, 12});
    CHECK(run({{"x", Tensor(TensorType{DType::float32, Shape{samples, 2, 3}})}})[0] ==
          Tensor::of({samples, 2, 3}, expected));
  }
}

TEST_CASE("a model that computes with the number of samples is refused") {
  const std::string advice = "' depends on the number of samples; export the model for a fixed number";
  CHECK(testing::user_error([] {
          open([](const Node& x) { return x / static_cast<double>(x.shape()[0]); });
        }) == "the node 'div_2" + advice);
  CHECK(testing::user_error([] {
          open([](const Node& x) { return broadcast_to(sum(x), Shape{2 * x.shape()[0]}); });
        }) == "the node 'broadcast_to_2" + advice);
  CHECK(testing::user_error([] {
          open([](const Node& x) { return x.shape()[0] == 101 ? exp(x) : log(x); });
        }) == "the node 'exp_1" + advice);
  // A constant that is another one for each sample, or for each number of samples.
  CHECK(testing::user_error([] {
          open([](const Node& x) {
            return exp(constant_of(x, [](std::int64_t, std::int64_t sample, std::int64_t) {
              return sample == 100 ? 1.0F : 0.0F;
            }));
          });
        }) == "the node 'exp_1" + advice);
  CHECK(testing::user_error([] {
          open([](const Node& x) {
            return exp(x.graph().constant(Tensor::scalar(x.shape()[0] == 101 ? 1.0F : 0.0F).reshaped({1})));
          });
        }) == "the node 'exp_1" + advice);
}

}  // namespace plexaura::open_batch_test

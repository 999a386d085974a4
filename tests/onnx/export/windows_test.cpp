#include <algorithm>
#include <doctest/doctest.h>

#include "onnx/exporter.h"
#include "onnx/format/proto.h"
#include "onnx/runner.h"
#include "onnx/stored_data.h"

#include "core/ops/adaptive_pool.h"
#include "core/ops/pool3d.h"
#include "core/vm/function.h"
#include "testing/values.h"
#include "tests/support/backend.h"

namespace plexaura::onnx_export_windows_test {

namespace {

const ParameterStore no_parameters(std::vector<ParameterSpec>{});

// Returns the largest difference between the output of a graph and that of its file.
double distance_of_file(const Shape& shape, Node (*pool)(const Node&)) {
  testing::Random random(1);
  const Tensor x = random.tensor({DType::float32, shape}, -2, -1);
  Graph graph(Mode::inference);
  const Node y = pool(graph.input("x", x.type()));
  onnx::FileModel model(onnx::export_graph(std::vector<onnx::ExportedOutput>{{"y", y}}, no_parameters),
                        "pool.onnx");
  ParameterStore store = model.make_store();
  const Tensor found = onnx::Runner(model, store, testing::test_backend())({{"x", x}}).at(0);
  const Tensor expected = evaluate(y, {{"x", x}}, testing::test_backend());
  CHECK(found.type() == expected.type());
  return onnx::largest_distance(found, expected);
}

Node mean_2d(const Node& x) { return adaptive_avg_pool2d(x, {7, 7}); }
Node largest_2d(const Node& x) { return adaptive_max_pool2d(x, {7, 3}); }
Node mean_3d(const Node& x) { return adaptive_avg_pool3d(x, {2, 1, 4}); }
Node largest_3d(const Node& x) { return adaptive_max_pool3d(x, {2, 1, 4}); }

}  // namespace

TEST_CASE("adaptive pooling is exported also if its windows differ in size or overlap") {
  CHECK(distance_of_file({2, 3, 14, 21}, mean_2d) <= 1e-6);
  CHECK(distance_of_file({2, 3, 8, 15}, mean_2d) <= 1e-6);
  CHECK(distance_of_file({2, 3, 1, 3}, mean_2d) <= 1e-6);
  CHECK(distance_of_file({2, 3, 14, 8}, mean_2d) <= 1e-6);
  CHECK(distance_of_file({2, 3, 9, 8}, largest_2d) == 0);
  CHECK(distance_of_file({1, 2, 3, 4, 5}, mean_3d) <= 1e-6);
  CHECK(distance_of_file({1, 2, 3, 4, 5}, largest_3d) == 0);
}

TEST_CASE("adaptive pooling with windows of one size is one node") {
  Graph graph(Mode::inference);
  const Node y = adaptive_avg_pool2d(graph.input("x", {DType::float32, {1, 2, 14, 21}}), {7, 7});
  const std::string bytes = onnx::export_graph(std::vector<onnx::ExportedOutput>{{"y", y}}, no_parameters);
  const onnx::GraphProto file = onnx::parse_model(bytes).graph;
  REQUIRE(file.nodes.size() == 1);
  CHECK(file.nodes[0].op == "AveragePool");
}

}  // namespace plexaura::onnx_export_windows_test

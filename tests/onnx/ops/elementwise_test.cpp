#include <doctest/doctest.h>

#include "core/vm/function.h"
#include "tests/onnx/one_node.h"

namespace plexaura::onnx_elementwise_test {

namespace {

std::string dropout_model(std::int64_t version, const OneNode::Attributes& attributes,
                          bool has_mask = false) {
  WrittenGraph graph;
  graph.node("Dropout", {"x"}, has_mask ? WrittenGraph::Names{"y", "mask"} : WrittenGraph::Names{"y"},
             attributes);
  graph.input("x", {4});
  graph.output("y");
  return graph.model(version);
}

bool drops_in_training(const std::string& file) {
  const onnx::FileModel model(file, "dropout.onnx");
  Graph graph(Mode::train);
  const Node x = graph.input("x", {DType::float32, {4}});
  return model(x).id() != x.id();
}

}  // namespace

TEST_CASE("dropout of a version below 7 is switched off by is_test") {
  CHECK(!drops_in_training(dropout_model(6, {{"is_test", 1}})));
  CHECK(drops_in_training(dropout_model(6, {{"is_test", 0}})));
  CHECK(drops_in_training(dropout_model(7, {})));
  CHECK_THROWS_WITH_AS(drops_in_training(dropout_model(7, {{"is_test", 1}})),
                       "dropout.onnx: node 0 (Dropout): its attribute 'is_test' is not supported", UserError);
}

TEST_CASE("a mask of dropout is an error if elements are dropped") {
  CHECK_THROWS_WITH_AS(drops_in_training(dropout_model(7, {}, true)),
                       "dropout.onnx: node 0 (Dropout): its mask is not supported for training", UserError);
}

TEST_CASE("a mask of dropout has the type of its version") {
  const Tensor x = floats({2}, {1, 2});
  CHECK(OneNode("Dropout", 7, {}, 2)({x})[1] == floats({2}, {1, 1}));
  CHECK(OneNode("Dropout", 10, {}, 2)({x})[1].dtype() == DType::boolean);
}

TEST_CASE("an axis of the second operand is an attribute of versions below 7 only") {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  const Tensor b = floats({2}, {1, 2});
  const OneNode::Attributes attributes{{"axis", 0}, {"broadcast", 1}};
  CHECK(OneNode("Sub", 6, attributes)({x, b})[0] == floats({2, 2}, {0, 1, 1, 2}));
  CHECK(OneNode("Pow", 6, attributes)({x, b})[0] == floats({2, 2}, {1, 2, 9, 16}));
  CHECK(OneNode("Sub", 7, attributes).error({x, b}).find("its attribute 'axis' is not supported") !=
        std::string::npos);
}

TEST_CASE("the slope of PRelu and the limits of Clip do not enlarge x") {
  const Tensor x = floats({1, 2}, {-1, 2});
  const Tensor two = floats({2, 1}, {3, 4});
  CHECK(OneNode("PRelu", 9)({x, floats({2}, {3, 4})})[0] == floats({1, 2}, {-3, 2}));
  CHECK(OneNode("PRelu", 9).error({x, two}).find("an operand must broadcast to [1,2]") != std::string::npos);
  CHECK(OneNode("Clip", 13).error({x, two}).find("an operand must broadcast to [1,2]") != std::string::npos);
}

}  // namespace plexaura::onnx_elementwise_test

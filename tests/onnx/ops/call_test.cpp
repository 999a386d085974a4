#include "onnx/ops/call.h"

#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_call_test {

TEST_CASE("an attribute with a value of another kind is an error") {
  CHECK(OneNode("LeakyRelu", 6, {{"alpha", 1}}).error({floats({1}, {1})}) ==
        "one.onnx: node 0 (LeakyRelu): its attribute 'alpha' is of kind 2 of the standard, but must be of "
        "kind 1");
}

TEST_CASE("the attribute consumed_inputs changes nothing") {
  CHECK(OneNode("Relu", 1, {{"consumed_inputs", WrittenGraph::Extents{1}}})({floats({1}, {-1})})[0] ==
        floats({1}, {0}));
}

}  // namespace plexaura::onnx_call_test

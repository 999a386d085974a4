#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_losses_test {

TEST_CASE("labels and weights of a loss that do not fit are errors, and do not broadcast") {
  const OneNode loss("NegativeLogLikelihoodLoss", 13);
  const Tensor logarithms = floats({2, 2}, {-1, -2, -3, -4});
  CHECK(loss({logarithms, integers({2}, {0, 1})})[0] == floats({}, {2.5}));
  CHECK(loss.error({logarithms, integers({1}, {0})}) ==
        "one.onnx: node 0 (NegativeLogLikelihoodLoss): labels of [2,2] must have the shape [2], not [1]");
  CHECK(loss.error({logarithms, integers({2}, {0, 1}), floats({3}, {1, 1, 1})})
            .find("each of the 2 classes, not [3]") != std::string::npos);
}

}  // namespace plexaura::onnx_losses_test

#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_reductions_test {

TEST_CASE("Gemm takes matrices, and its bias broadcasts to the product only") {
  const OneNode product("Gemm", 13);
  const Tensor row = floats({1, 2}, {1, 2});
  const Tensor square = floats({2, 2}, {1, 0, 0, 1});
  CHECK(product({row, square, floats({2}, {10, 20})})[0] == floats({1, 2}, {11, 22}));
  CHECK(product.error({row, square, floats({3, 1}, {1, 2, 3})}) ==
        "one.onnx: node 0 (Gemm): an operand must broadcast to [1,2], but would make the result [3,2]");
  CHECK(product.error({floats({1, 1, 2}, {1, 2}), square}).find("input 0 must be a matrix, not [1,1,2]") !=
        std::string::npos);
}

}  // namespace plexaura::onnx_reductions_test

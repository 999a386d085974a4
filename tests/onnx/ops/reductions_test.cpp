#include <doctest/doctest.h>
#include <limits>

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

TEST_CASE("the extremum of bool is a logical or or and, and that of no elements is the bound of the type") {
  const OneNode largest("ReduceMax", 20, {{"keepdims", 0}});
  const OneNode smallest("ReduceMin", 20, {{"keepdims", 0}});
  const Tensor flags = Tensor::of<std::uint8_t>({2, 2}, {0, 1, 0, 0}).cast(DType::boolean);
  const Tensor axis = integers({1}, {1});
  CHECK(largest({flags, axis})[0] == Tensor::of<std::uint8_t>({2}, {1, 0}).cast(DType::boolean));
  CHECK(smallest({flags, axis})[0] == Tensor::of<std::uint8_t>({2}, {0, 0}).cast(DType::boolean));
  const Tensor none(TensorType{DType::float32, {2, 0}});
  CHECK(largest({none, axis})[0].as<float>()[1] == -std::numeric_limits<float>::infinity());
  CHECK(smallest({none, axis})[0].as<float>()[0] == std::numeric_limits<float>::infinity());
  const Tensor no_flags(TensorType{DType::boolean, {1, 0}});
  CHECK(largest({no_flags, axis})[0].cast(DType::uint8).as<std::uint8_t>()[0] == 0);
  CHECK(smallest({no_flags, axis})[0].cast(DType::uint8).as<std::uint8_t>()[0] == 1);
  CHECK(largest.error({Tensor(TensorType{DType::int64, {2, 0}}), axis}).find("is empty") !=
        std::string::npos);
}

TEST_CASE("a reduction over no axes reduces each element alone, and keeps the other steps") {
  const Tensor x = floats({1, 2}, {-2, 4});
  const auto reduced = [&](const char* op) {
    return OneNode(op, 18, {{"noop_with_empty_axes", 1}, {"keepdims", 0}})({x})[0];
  };
  for (const char* op : {"ReduceMax", "ReduceMean", "ReduceProd"}) CHECK(reduced(op) == x);
  CHECK(reduced("ReduceL1") == floats({1, 2}, {2, 4}));
  CHECK(reduced("ReduceL2") == floats({1, 2}, {2, 4}));
  CHECK(reduced("ReduceSumSquare") == floats({1, 2}, {4, 16}));
  CHECK(OneNode("ReduceSum", 13, {{"noop_with_empty_axes", 1}})({x, integers({0}, {})})[0] == x);
}

TEST_CASE("before version 13, Softmax and Hardmax took the axes from their axis on together") {
  const Tensor x = floats({2, 2, 2}, {1, 3, 3, 2, 5, 4, 0, 7});
  CHECK(OneNode("Hardmax", 12)({x})[0] == floats({2, 2, 2}, {0, 1, 0, 0, 0, 0, 0, 1}));
  CHECK(OneNode("Hardmax", 12, {{"axis", 0}})({x})[0] == floats({2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 1}));
  CHECK(OneNode("Hardmax", 13)({x})[0] == floats({2, 2, 2}, {0, 1, 1, 0, 1, 0, 0, 1}));
  const Tensor equal(TensorType{DType::float32, {1, 2, 2}});
  CHECK(OneNode("Softmax", 12)({equal})[0] == floats({1, 2, 2}, {0.25, 0.25, 0.25, 0.25}));
  CHECK(OneNode("Softmax", 13)({equal})[0] == floats({1, 2, 2}, {0.5, 0.5, 0.5, 0.5}));
}

}  // namespace plexaura::onnx_reductions_test

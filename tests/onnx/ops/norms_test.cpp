#include <cmath>
#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_norms_test {

namespace {

// x of these extents has two channels and counts from 0. The moments are 1 and 4, and 7 and 9.
std::vector<Tensor> batch_norm_inputs(const Shape& shape, DType dtype = DType::float32) {
  std::vector<float> counted(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<float>(i);
  std::vector<Tensor> inputs{floats(shape, counted), floats({2}, {2, 3}), floats({2}, {0, 1}),
                             floats({2}, {1, 7}), floats({2}, {4, 9})};
  for (Tensor& input : inputs) input = input.cast(dtype);
  return inputs;
}

std::vector<double> rounded(const Tensor& tensor) {
  std::vector<double> numbers = tensor.to_doubles();
  for (double& number : numbers) number = std::round(number * 100) / 100;
  return numbers;
}

}  // namespace

TEST_CASE("batch norm of a file takes x of any rank from two on") {
  const OneNode norm("BatchNormalization", 15);
  const std::vector<double> two{-1, -5, 1, -3};
  CHECK(rounded(norm(batch_norm_inputs({2, 2}))[0]) == two);
  const std::vector<double> longer{-1, 0, 1, -3, -2, -1};
  for (const Shape& shape :
       {Shape{1, 2, 3}, Shape{1, 2, 3, 1}, Shape{1, 2, 1, 3, 1}, Shape{1, 2, 1, 1, 1, 3}}) {
    INFO(to_string(shape));
    const Tensor y = norm(batch_norm_inputs(shape))[0];
    CHECK(y.shape() == shape);
    CHECK(rounded(y) == longer);
  }
  CHECK(norm.error(batch_norm_inputs({2})).find("x must have the axes N and C, not [2]") !=
        std::string::npos);
}

TEST_CASE("batch norm of a file computes float16, also with moments of float32") {
  const OneNode norm("BatchNormalization", 15);
  std::vector<Tensor> inputs = batch_norm_inputs({1, 2, 3}, DType::float16);
  CHECK(rounded(norm(inputs)[0]) == std::vector<double>{-1, 0, 1, -3, -2, -1});
  CHECK(norm(inputs)[0].dtype() == DType::float16);
  for (std::size_t i = 3; i < 5; ++i) inputs[i] = inputs[i].cast(DType::float32);
  CHECK(rounded(norm(inputs)[0]) == std::vector<double>{-1, 0, 1, -3, -2, -1});
  const OneNode trained("BatchNormalization", 15, {{"training_mode", 1}}, 3);
  const std::vector<Tensor> results = trained(inputs);
  CHECK(results[0].dtype() == DType::float16);
  CHECK(results[1].dtype() == DType::float32);
  CHECK(rounded(results[1]) == std::vector<double>{1, 6.7});
}

TEST_CASE("batch norm of a file refuses moments of other channels") {
  std::vector<Tensor> inputs = batch_norm_inputs({1, 2, 3});
  inputs[4] = floats({1}, {4});
  CHECK(OneNode("BatchNormalization", 15).error(inputs) ==
        "one.onnx: node 0 (BatchNormalization): input 4 must have one element for each channel of [1,2,3], "
        "but has "
        "the shape [1]");
}

TEST_CASE("instance norm and the norms of float16 are computed in float32") {
  const Tensor x = floats({1, 1, 2}, {300, -300}).cast(DType::float16);
  const Tensor one = floats({1}, {1}).cast(DType::float16);
  const Tensor zero = floats({1}, {0}).cast(DType::float16);
  CHECK(rounded(OneNode("InstanceNormalization", 6)({x, one, zero})[0]) == std::vector<double>{1, -1});
  CHECK(rounded(OneNode("LpNormalization", 1)({x})[0]) == std::vector<double>{0.71, -0.71});
  CHECK(rounded(OneNode("MeanVarianceNormalization", 13, {{"axes", WrittenGraph::Extents{2}}})({x})[0]) ==
        std::vector<double>{1, -1});
}

}  // namespace plexaura::onnx_norms_test

#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_quantised_test {

namespace {

// a [2, 2] and b [2, 3] with a scale for each row of a and each column of b. In real numbers a is [[1, 2], [1, 1.5]],
// and b [[5, 3, 1.25], [8, 4, 2]]. The result has the scale 0.5 and the zero point 3.
std::vector<Tensor> product_inputs() {
  return {bytes({2, 2}, {1, 2, 3, 4}), floats({2}, {1, 0.5}),
          bytes({2}, {0, 1}),          bytes({2, 3}, {5, 6, 7, 8, 8, 10}),
          floats({3}, {1, 0.5, 0.25}), bytes({3}, {0, 0, 2}),
          floats({}, {0.5}),           bytes({}, {3})};
}

const Tensor& expected_product() {
  static const Tensor product = bytes({2, 3}, {45, 25, 13, 37, 21, 11});
  return product;
}

}  // namespace

TEST_CASE("a quantised product has a scale for each row and for each column") {
  const OneNode product("QLinearMatMul", 10);
  CHECK(product(product_inputs())[0] == expected_product());
  std::vector<Tensor> stacked = product_inputs();
  const std::vector<Shape> shapes{{1, 2, 2}, {1, 2, 1}, {1, 2, 1}, {1, 2, 3}, {1, 1, 3}, {1, 1, 3}};
  for (std::size_t i = 0; i < shapes.size(); ++i) stacked[i] = stacked[i].reshaped(shapes[i]);
  CHECK(product(stacked)[0] == expected_product().reshaped({1, 2, 3}));
}

TEST_CASE("a product of a vector has one scale for each operand") {
  std::vector<Tensor> inputs = product_inputs();
  inputs[0] = bytes({2}, {1, 2});
  inputs[1] = floats({1}, {1});
  inputs[2] = bytes({1}, {0});
  const OneNode product("QLinearMatMul", 10);
  CHECK(product.error(inputs).find("products with a vector need one scale for each operand") !=
        std::string::npos);
  inputs[4] = floats({}, {1});
  inputs[5] = bytes({}, {0});
  CHECK(product(inputs)[0] == bytes({3}, {45, 47, 57}));
}

TEST_CASE("scales and zero points that do not fit are an error") {
  const OneNode product("QLinearMatMul", 10);
  const auto error_with = [&](std::size_t input, const Tensor& tensor) {
    std::vector<Tensor> inputs = product_inputs();
    inputs[input] = tensor;
    return product.error(inputs);
  };
  CHECK(error_with(2, bytes({1}, {0})).find("the zero point [1] does not have the shape of its scale, [2]") !=
        std::string::npos);
  CHECK(error_with(5, floats({3}, {0, 0, 0}))
            .find("a zero point has the type of its integers, uint8, not float32") != std::string::npos);
  CHECK(error_with(6, floats({2}, {1, 1})).find("the scale of the result must have one element") !=
        std::string::npos);
  std::vector<Tensor> swapped = product_inputs();
  swapped[4] = floats({2}, {1, 1});
  swapped[5] = bytes({2}, {0, 0});
  CHECK(product.error(swapped).find("one for each of the 3 indices of axis 1, not the shape [2]") !=
        std::string::npos);
}

TEST_CASE("a scale for each index of another axis is an error, and does not broadcast") {
  const OneNode dequantise("DequantizeLinear", 13, {{"axis", 0}});
  CHECK(dequantise({bytes({2, 1}, {1, 2}), floats({2}, {2, 3})})[0] == floats({2, 1}, {2, 6}));
  CHECK(dequantise.error({bytes({1, 2}, {1, 2}), floats({2}, {2, 3})}).find("of axis 0, not the shape [2]") !=
        std::string::npos);
  const OneNode quantise("QuantizeLinear", 13);
  CHECK(quantise.error({floats({1, 1}, {1}), floats({2}, {2, 3})}).find("of axis 1, not the shape [2]") !=
        std::string::npos);
}

TEST_CASE("the attribute saturate changes nothing for integers") {
  const OneNode quantise("QuantizeLinear", 19, {{"saturate", 0}});
  CHECK(quantise({floats({2}, {2, 900}), floats({}, {2}), bytes({}, {1})})[0] == bytes({2}, {2, 255}));
}

TEST_CASE("a quantised convolution has one scale for x and one for each output channel") {
  const std::vector<Tensor> inputs{bytes({1, 1, 2}, {2, 4}), floats({}, {0.5}),   bytes({}, {0}),
                                   bytes({2, 1, 1}, {1, 3}), floats({2}, {1, 2}), bytes({2}, {0, 1}),
                                   floats({}, {1}),          bytes({}, {1})};
  const OneNode convolution("QLinearConv", 10);
  CHECK(convolution(inputs)[0] == bytes({1, 2, 2}, {2, 3, 5, 9}));
  std::vector<Tensor> odd = inputs;
  odd[1] = floats({2}, {1, 1});
  odd[2] = bytes({2}, {0, 0});
  CHECK(convolution.error(odd).find("the zero point of x must have one element") != std::string::npos);
}

}  // namespace plexaura::onnx_quantised_test

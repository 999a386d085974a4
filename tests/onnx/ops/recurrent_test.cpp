#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_recurrent_test {

namespace {

// Two elements of one sequence with one feature, and a state with one feature: h = relu(x + h).
std::vector<Tensor> sum_inputs() {
  return {floats({2, 1, 1}, {1, 2}), floats({1, 1, 1}, {1}), floats({1, 1, 1}, {1})};
}

OneNode summing(OneNode::Attributes more = {}) {
  more.emplace_back("activations", WrittenGraph::Names{"Relu"});
  return {"RNN", 14, more};
}

}  // namespace

TEST_CASE("a recurrent layer checks the shapes of all inputs") {
  CHECK(summing()(sum_inputs())[0] == floats({2, 1, 1, 1}, {1, 3}));
  const auto error_with = [](std::size_t input, const Tensor& tensor) {
    std::vector<Tensor> inputs = sum_inputs();
    std::vector<std::size_t> left_out;
    for (std::size_t i = inputs.size(); i < input; ++i) left_out.push_back(i);
    if (input < inputs.size())
      inputs[input] = tensor;
    else
      inputs.push_back(tensor);
    return summing().error(inputs, left_out);
  };
  CHECK(error_with(0, floats({2}, {1, 2})).find("x must have three axes, not [2]") != std::string::npos);
  CHECK(error_with(1, floats({1, 1}, {1})).find("input 1 must have the shape [1,1,1], not [1,1]") !=
        std::string::npos);
  CHECK(error_with(2, floats({1}, {1})).find("input 2 must have three axes, not [1]") != std::string::npos);
  CHECK(error_with(3, floats({1, 1}, {1})).find("input 3 must have the shape [1,2], not [1,1]") !=
        std::string::npos);
  CHECK(error_with(4, integers({1, 1}, {1})).find("input 4 must have the shape [1], not [1,1]") !=
        std::string::npos);
  CHECK(error_with(5, floats({1}, {1})).find("input 5 must have the shape [1,1,1], not [1]") !=
        std::string::npos);
  CHECK(error_with(6, floats({1, 1, 1}, {1})).find("it has 7 inputs, but at most 6 are possible") !=
        std::string::npos);
}

TEST_CASE("a recurrent layer refuses attributes that its weights contradict") {
  CHECK(summing({{"hidden_size", 2}}).error(sum_inputs()).find("hidden_size differs from the 1 features") !=
        std::string::npos);
  CHECK(summing({{"direction", std::string("bidirectional")}})
            .error(sum_inputs())
            .find("[2,1,1], not [1,1,1]") != std::string::npos);
  const OneNode two("RNN", 14, {{"activations", WrittenGraph::Names{"Relu", "Tanh"}}});
  CHECK(two.error(sum_inputs()).find("it has 2 activations, but needs 1") != std::string::npos);
  CHECK(summing({{"input_forget", 0}})(sum_inputs())[0] == floats({2, 1, 1, 1}, {1, 3}));
}

TEST_CASE("the states of a layer with layout 1 begin with the batch") {
  std::vector<Tensor> inputs = sum_inputs();
  inputs[0] = floats({2, 1, 1}, {1, 2});  // two sequences of one element
  inputs.push_back(floats({2, 1, 1}, {10, 20}));
  CHECK(summing({{"layout", 1}})(inputs, {3, 4})[0] == floats({2, 1, 1, 1}, {11, 22}));
}

}  // namespace plexaura::onnx_recurrent_test

#include "backends/cpu/adapter/in_place.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace plexaura {

namespace {

// The one list. Of an op in it, element i of every output depends on nothing but the elements of the inputs
// that broadcasting puts beside it.
constexpr std::array elementwise = std::to_array<std::string_view>(
    {"add", "sub", "mul", "div", "where", "neg", "abs", "exp", "log", "sqrt", "square", "sigmoid", "tanh",
     "relu", "relu_grad", "cast", "stop_gradient", "sgd_step", "adam_step"});

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> in_place_pairs(const Op& op,
                                                                std::span<const TensorType> inputs,
                                                                std::span<const TensorType> outputs) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  if (std::ranges::find(elementwise, op.name()) == elementwise.end()) return pairs;
  for (std::size_t output = 0; output < outputs.size(); ++output)
    for (std::size_t input = 0; input < inputs.size(); ++input)
      if (outputs[output] == inputs[input]) pairs.emplace_back(output, input);
  return pairs;
}

}  // namespace plexaura

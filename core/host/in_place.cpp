#include "core/host/in_place.h"

namespace plexaura {

std::vector<std::pair<std::size_t, std::size_t>> in_place_pairs(const Op& op,
                                                                std::span<const TensorType> inputs,
                                                                std::span<const TensorType> outputs) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  if (!op.traits().elementwise) return pairs;
  for (std::size_t output = 0; output < outputs.size(); ++output)
    for (std::size_t input = 0; input < inputs.size(); ++input)
      if (outputs[output] == inputs[input]) pairs.emplace_back(output, input);
  return pairs;
}

}  // namespace plexaura

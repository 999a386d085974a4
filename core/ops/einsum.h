#pragma once

#include <concepts>
#include <source_location>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/concat.h"

namespace plexaura {

// Products that are summed over chosen axes, composed of matmul() and other ops. Operands are numbers of one dtype.
// Sums of integers wrap around.

// The sum of products over axes of a and axes of b, which are listed in pairs of the same extent. The result has the
// other axes of a, then those of b. Negative axes count from the end. Without axes it has all products.
PLEXAURA_API Node tensordot(Operand a, Operand b, std::vector<std::int64_t> axes_a,
                            std::vector<std::int64_t> axes_b);
// tensordot() over the last `count` axes of a and the first `count` axes of b.
PLEXAURA_API Node tensordot(Operand a, Operand b, std::int64_t count);

// Einstein's notation, as in numpy: einsum("bik,bkj->bij", {a, b}) is a batched matrix product. Each operand has a
// letter for each of its axes; axes with the same letter have the same extent, or 1. The result has the axes after
// "->". All others are summed over. Without "->" the result has the letters that occur once, in alphabetical order,
// capitals first. A letter that occurs twice in an operand means its diagonal. "..." stands for all axes that have no
// letter; they broadcast, and come first if there is no "->". Operands are multiplied from the first to the last.
PLEXAURA_API Node einsum(std::string_view equation, const std::vector<Operand>& operands);
Node einsum(std::string_view equation, const std::same_as<std::vector<Node>> auto& operands,
            std::source_location where = std::source_location::current()) {
  return einsum(equation, operands_of(operands, where));
}

}  // namespace plexaura

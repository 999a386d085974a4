#pragma once

#include <concepts>
#include <source_location>
#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/concat.h"

namespace plexaura {

// Ops that rearrange axes, made of those of shape.h, slice.h and concat.h. They take any dtype. Negative axes
// count from the end. An axis that does not exist is a UserError.

// Removes axes of extent 1: all of them if `axes` is empty, otherwise those of `axes`. Axes of another extent
// remain, even if `axes` names them.
PLEXAURA_API Node squeeze(Operand x, std::vector<std::int64_t> axes = {});
inline Node squeeze(Operand x, WrittenInteger auto axis) {
  return squeeze(x, std::vector{static_cast<std::int64_t>(axis)});
}

// Adds an axis of extent 1, which becomes axis `axis` of the result: x [A..., B...] -> [A..., 1, B...].
PLEXAURA_API Node unsqueeze(Operand x, std::int64_t axis);

// Swaps two axes, which may be the same one.
PLEXAURA_API Node transpose(Operand x, std::int64_t a, std::int64_t b);

// Joins N parts of one type and shape along a new axis: N times [A..., B...] -> [A..., N, B...]. `axis` is the
// new axis of the result. At least one part is needed.
PLEXAURA_API Node stack(std::vector<Operand> parts, std::int64_t axis = 0);
Node stack(const std::same_as<std::vector<Node>> auto& parts, std::int64_t axis = 0,
           std::source_location where = std::source_location::current()) {
  return stack(operands_of(parts, where), axis);
}

// Cuts an axis into pieces of `size` elements, which is at least 1. The last piece is smaller if `size` does
// not divide the extent. An empty axis gives one empty piece.
PLEXAURA_API std::vector<Node> split(Operand x, std::int64_t size, std::int64_t axis = 0);

// Cuts an axis into pieces of these sizes, which are 0 or more and add up to its extent.
PLEXAURA_API std::vector<Node> split_with_sizes(Operand x, std::vector<std::int64_t> sizes,
                                                std::int64_t axis = 0);

// Cuts an axis into at most `count` pieces, which is at least 1. Each piece has extent / count elements,
// rounded up; the last one may be smaller. There are fewer pieces if these suffice: 5 elements in 4 chunks
// are 2, 2 and 1. An empty axis gives `count` empty pieces.
PLEXAURA_API std::vector<Node> chunk(Operand x, std::int64_t count, std::int64_t axis = 0);

// Repeats x as a whole: repeats[i] times, which is 0 or more, along axis i. The shorter one of `repeats` and
// x's shape is filled up with ones at the front.
PLEXAURA_API Node tile(Operand x, std::vector<std::int64_t> repeats);

// broadcast_to() the shape of `like`.
PLEXAURA_API Node expand_as(Operand x, Operand like);

}  // namespace plexaura

#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Ops that reverse, move, repeat or cut elements, composed of those of slice.h, concat.h and shape.h. They take any
// dtype. Negative axes count from the end. An axis that does not exist is a UserError.

// Reverses the order of the elements along axes; along all of them if `axes` is empty.
PLEXAURA_API Node flip(Operand x, std::vector<std::int64_t> axes = {});

// Moves each element shifts[i] places towards the end of axes[i]; negative shifts move it towards the start. Elements
// that leave at one end come back at the other one. An axis may be named more than once. Without axes there is one
// shift, and the elements are moved in row-major order.
PLEXAURA_API Node roll(Operand x, std::vector<std::int64_t> shifts, std::vector<std::int64_t> axes = {});

// The elements that pad() adds, for an axis with the elements a b c: `constant` adds a number, `reflect` continues
// with c b | a b c | b a, `replicate` with a a | a b c | c c, and `circular` with b c | a b c | a b.
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular };

struct AxisPadding {
  std::int64_t axis = 0;
  std::int64_t before = 0;  // number of elements to add, 0 or more
  std::int64_t after = 0;
};

struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // the number that PadMode::constant adds; it must be 0 in other modes
};

// Adds elements at both ends of axes, each of which is named once. `reflect` adds fewer elements at each end than the
// axis has, `circular` at most as many, and `replicate` any number if the axis is not empty.
PLEXAURA_API Node pad(Operand x, const std::vector<AxisPadding>& widths, PadOptions options = {});

// The last two axes of x are matrices. triu() replaces the elements below a diagonal by 0, and tril() those
// above it. Diagonal 0 is the main diagonal; positive numbers are diagonals above it, and negative ones below
// it.
PLEXAURA_API Node triu(Operand x, std::int64_t diagonal = 0);
PLEXAURA_API Node tril(Operand x, std::int64_t diagonal = 0);

// A diagonal of the matrices that two axes form, as the last axis of the result: x[i, i + offset] for i = 0, 1, ...,
// or x[i - offset, i] for a negative offset. It is empty if the offset lies outside of the matrix.
PLEXAURA_API Node diagonal(Operand x, std::int64_t offset = 0, std::int64_t row_axis = 0,
                           std::int64_t column_axis = 1);

}  // namespace plexaura

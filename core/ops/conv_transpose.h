#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/window.h"

namespace plexaura {

// The options of the convolution whose gradient is computed, and `output_padding`, which is added to the
// extents of the result at their end. With a stride above 1, that convolution maps several input extents to
// the extents of x; `output_padding` chooses among them.
template <class Size>
struct ConvTransposeOptions {
  Size stride{1};
  Size padding{0};  // elements that are cut from both ends of each axis of the result
  Size dilation{1};
  std::int64_t groups = 1;
  Size output_padding{0};  // less than the stride
  // The number of elements that are cut from the end of each axis. If it is set, `padding` is cut from the
  // beginning only.
  std::optional<Size> padding_end = {};
};

using ConvTranspose1dOptions = ConvTransposeOptions<std::int64_t>;
using ConvTranspose2dOptions = ConvTransposeOptions<Size2d>;
using ConvTranspose3dOptions = ConvTransposeOptions<Size3d>;

// Transposed convolutions: each element of x adds a copy of the kernel, multiplied by it, to the result.
//   y[n, o, i stride - padding + a dilation, ...] += x[n, c, i, ...] weights[c, o, a, ...], and bias[o] everywhere
// x [N, C, ...]; weights [C, O / groups, kernel ...]; bias [O] -> [N, O, ...], with one, two or three axes more, for
// example of the extent
//   OH = (H - 1) stride - padding - padding_end + dilation (KH - 1) + 1 + output_padding. Floating, one dtype.
PLEXAURA_API Node conv_transpose1d(Operand x, Operand weights, ConvTranspose1dOptions options = {});
PLEXAURA_API Node conv_transpose1d(Operand x, Operand weights, Operand bias,
                                   ConvTranspose1dOptions options = {});
PLEXAURA_API Node conv_transpose2d(Operand x, Operand weights, ConvTranspose2dOptions options = {});
PLEXAURA_API Node conv_transpose2d(Operand x, Operand weights, Operand bias,
                                   ConvTranspose2dOptions options = {});
PLEXAURA_API Node conv_transpose3d(Operand x, Operand weights, ConvTranspose3dOptions options = {});
PLEXAURA_API Node conv_transpose3d(Operand x, Operand weights, Operand bias,
                                   ConvTranspose3dOptions options = {});

}  // namespace plexaura

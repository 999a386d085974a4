#pragma once

#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::reference {

// The options of a convolution over any number of axes: one number for each.
struct Convolution {
  Index stride;
  Index padding;
  Index padding_end;
  Index dilation;
  std::int64_t groups = 1;
};

inline Index index_of(Size2d size) { return {size.h, size.w}; }
inline Index index_of(Size3d size) { return {size.d, size.h, size.w}; }

template <class Options>
Convolution convolution_of(const Options& options) {
  return {index_of(options.stride), index_of(options.padding),
          index_of(options.padding_end.value_or(options.padding)), index_of(options.dilation),
          options.groups};
}

// x [N, C, ...], weights [O, C / groups, kernel ...] -> [N, O, ...].
Tensor convolve(const Tensor& x, const Tensor& weights, const Convolution& of);
Tensor convolution_input_grad(const Tensor& weights, const Tensor& grad_out, const Index& input,
                              const Convolution& of);
Tensor convolution_weight_grad(const Tensor& x, const Tensor& grad_out, const Index& kernel,
                               const Convolution& of);
Tensor add_bias(const Tensor& y, const Tensor& bias);  // bias of the channels of [N, C, ...]

}  // namespace plexaura::testing::reference

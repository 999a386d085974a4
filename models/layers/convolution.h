#pragma once

#include <optional>

#include "core/ops/window.h"
#include "models/layers/layer.h"

namespace plexaura::layers {

// Convolutions over one, two or three axes. `Size` is std::int64_t, Size2d or Size3d. Padding is zeros.
template <class Size>
struct ConvOptions {
  Size stride{1};
  Size padding{0};
  Size dilation{1};
  std::int64_t groups = 1;
  bool bias = true;
  // Uniform within 1 / sqrt(number of inputs of an output), as in PyTorch.
  Initialiser weight = Initialiser::lecun_uniform();
  // Initial values of the bias; empty: uniform within the bounds of the default weight.
  std::optional<Initialiser> bias_start = {};
};
using Conv1dOptions = ConvOptions<std::int64_t>;
using Conv2dOptions = ConvOptions<Size2d>;
using Conv3dOptions = ConvOptions<Size3d>;

// Convolution, the ops conv1d, conv2d and conv3d: x [N, in, ...] -> [N, out, ...].
// Parameters: weight [out, in / groups, kernel...], bias [out].
template <class Size>
class Convolution final : public Layer {
 public:
  // Throws UserError if `groups` does not divide `in` and `out`.
  Convolution(std::int64_t in, std::int64_t out, Size kernel, const ConvOptions<Size>& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  ConvOptions<Size> options_;
  Parameter weight_;
  std::unique_ptr<Parameter> bias_;
};
using Conv1d = Convolution<std::int64_t>;
using Conv2d = Convolution<Size2d>;
using Conv3d = Convolution<Size3d>;

template <class Size>
struct TransposedConvOptions {
  Size stride{1};
  Size padding{0};         // elements cut from both ends of each axis of the result
  Size output_padding{0};  // elements added at the end of each axis of the result; less than the stride
  Size dilation{1};
  std::int64_t groups = 1;
  bool bias = true;
  // Uniform within 1 / sqrt(out / groups * elements of the kernel), as in PyTorch.
  Initialiser weight = Initialiser::lecun_uniform();
  // Initial values of the bias; empty: uniform within the bounds of the default weight.
  std::optional<Initialiser> bias_start = {};
};

// Transposed convolution, the ops conv_transpose1d, conv_transpose2d and conv_transpose3d: x [N, in, ...] ->
// [N, out, ...].
// Parameters: weight [in, out / groups, kernel...], bias [out].
template <class Size>
class TransposedConvolution final : public Layer {
 public:
  // Throws UserError if `groups` does not divide `in` and `out`.
  TransposedConvolution(std::int64_t in, std::int64_t out, Size kernel,
                        const TransposedConvOptions<Size>& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  TransposedConvOptions<Size> options_;
  Parameter weight_;
  std::unique_ptr<Parameter> bias_;
};
using ConvTranspose1d = TransposedConvolution<std::int64_t>;
using ConvTranspose2d = TransposedConvolution<Size2d>;
using ConvTranspose3d = TransposedConvolution<Size3d>;

extern template class Convolution<std::int64_t>;
extern template class Convolution<Size2d>;
extern template class Convolution<Size3d>;
extern template class TransposedConvolution<std::int64_t>;
extern template class TransposedConvolution<Size2d>;
extern template class TransposedConvolution<Size3d>;

}  // namespace plexaura::layers

#include "models/zoo/residual_block.h"

#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace plexaura {

ResidualBlock::ConvNorm::ConvNorm(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                                  const layers::BatchNormOptions& norm_options)
    : conv(in, out, {kernel, kernel},
           {.stride = {stride, stride},
            .padding = {kernel / 2, kernel / 2},
            .bias = false,
            .weight = Initialiser::he_normal_fan_out()}),
      norm(out, norm_options) {}

ResidualBlock::ResidualBlock(const Options& options) {
  const layers::BatchNormOptions norm{.synchronised = options.synchronised};
  layers::BatchNormOptions last = norm;
  if (options.zero_init) last.weight = Initialiser::zeros();
  const std::int64_t out = out_channels(options.width, options.bottleneck);
  if (options.bottleneck) {
    append(options.in, options.width, 1, 1, norm);
    append(options.width, options.width, 3, options.stride, norm);
    append(options.width, out, 1, 1, last);
  } else {
    append(options.in, options.width, 3, options.stride, norm);
    append(options.width, out, 3, 1, last);
  }
  if (options.stride != 1 || options.in != out)
    downsample_ = std::make_unique<ConvNorm>(options.in, out, 1, options.stride, norm);
}

void ResidualBlock::append(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                           const layers::BatchNormOptions& norm) {
  convolutions_.push_back(std::make_unique<ConvNorm>(in, out, kernel, stride, norm));
}

void ResidualBlock::members(MemberVisitor& visit) {
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    visit(fmt::format("conv{}", i + 1), convolutions_[i]->conv);
    visit(fmt::format("bn{}", i + 1), convolutions_[i]->norm);
  }
  if (!downsample_) return;
  visit("downsample.0", downsample_->conv);
  visit("downsample.1", downsample_->norm);
}

Node ResidualBlock::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  const Node shortcut = downsample_ ? (*downsample_)(x) : x.node();
  Node y = x.node();
  for (const auto& convolution : convolutions_) {
    y = (*convolution)(y);
    if (convolution != convolutions_.back()) y = relu(y);
  }
  return relu(y + shortcut);
}

}  // namespace plexaura

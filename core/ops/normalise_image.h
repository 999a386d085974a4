#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Mean and standard deviation of each channel, for pixels from 0 to 1. A single number applies to all
// channels.
struct PixelScale {
  std::vector<double> mean = {0};
  std::vector<double> stddev = {1};  // above 0
};

struct NormaliseImageOptions {
  PixelScale scale = {};
  DType dtype = DType::float32;  // dtype of the result; floating

  static void fields(auto& self, auto& visitor) {
    visitor("mean", self.scale.mean);
    visitor("stddev", self.scale.stddev);
    visitor("dtype", self.dtype);
  }
};

// Converts images of bytes to floating numbers around 0: (x / 255 - mean) / stddev of the channel. Each of
// the three steps is rounded to the dtype of the result, or to float32 for 16-bit floats. No gradient.
//   x uint8 [N, C, ...] -> [N, C, ...]
PLEXAURA_API Node normalise_image(Operand x, NormaliseImageOptions options = {});

class PLEXAURA_API NormaliseImage final : public OpOf<NormaliseImage, NormaliseImageOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "normalise_image"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;

  double mean(std::int64_t channel) const { return of_channel(options().scale.mean, channel); }
  double stddev(std::int64_t channel) const { return of_channel(options().scale.stddev, channel); }

 private:
  static double of_channel(const std::vector<double>& values, std::int64_t channel) {
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)];
  }
};

}  // namespace plexaura

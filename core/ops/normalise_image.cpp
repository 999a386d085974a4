#include "core/ops/normalise_image.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

// The range of the numbers that a kernel computes with: float32, or float64 if the result is float64.
struct Range {
  explicit Range(DType dtype)
      : least(dtype == DType::float64 ? std::numeric_limits<double>::min()
                                      : std::numeric_limits<float>::min()),
        most(dtype == DType::float64 ? std::numeric_limits<double>::max()
                                     : std::numeric_limits<float>::max()) {}
  double least;  // the smallest positive number that is not denormal
  double most;
};

void require_one_per_channel(const char* what, const std::vector<double>& values, std::int64_t channels,
                             const Range& range) {
  if (values.size() != 1 && static_cast<std::int64_t>(values.size()) != channels)
    throw RuleError(fmt::format("{} has {} numbers and x has {} channels; give one for each, or one for all",
                                what, values.size(), channels));
  if (!std::ranges::all_of(values, [&](double value) { return std::abs(value) <= range.most; }))
    throw RuleError(fmt::format("{} must be finite", what));
}

}  // namespace

std::vector<TensorType> NormaliseImage::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (inputs[0].dtype != DType::uint8)
    throw RuleError(fmt::format("x must be the bytes of images, uint8 and not {}; numbers need only - and /",
                                name_of(inputs[0].dtype)));
  if (inputs[0].shape.rank() < 2)
    throw RuleError(
        fmt::format("x needs the axes [N, C, ...] and has {}; reshape it", inputs[0].shape.rank()));
  if (!is_floating(options().dtype))
    throw RuleError(fmt::format("the result must be floating, not {}", name_of(options().dtype)));
  const Range range(options().dtype);
  require_one_per_channel("mean", options().scale.mean, inputs[0].shape[1], range);
  require_one_per_channel("stddev", options().scale.stddev, inputs[0].shape[1], range);
  if (!std::ranges::all_of(options().scale.stddev, [&](double value) { return value >= range.least; }))
    throw RuleError("stddev must be above 0");
  return {{options().dtype, inputs[0].shape}};
}

Node normalise_image(Operand x, NormaliseImageOptions options) {
  return apply(std::make_shared<NormaliseImage>(std::move(options)), {x});
}

void NormaliseImage::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t channels = result.shape()[1];
  const std::int64_t planes = result.shape()[0] * channels;
  const std::int64_t pixels = result.elements() / planes;
  const auto* src = call.inputs[0].as<std::uint8_t>();
  portable::dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = result.as<T>();
    portable::parallel_for(planes, pixels, [&](std::int64_t plane) {
      const auto mean = static_cast<portable::Compute<T>>(this->mean(plane % channels));
      const auto stddev = static_cast<portable::Compute<T>>(this->stddev(plane % channels));
      for (std::int64_t i = plane * pixels; i < (plane + 1) * pixels; ++i)
        dst[i] = T((static_cast<portable::Compute<T>>(src[i]) / 255 - mean) / stddev);
    });
  });
}

}  // namespace plexaura

#include "core/ops/window.h"

#include <fmt/format.h>

namespace plexaura {

namespace {

std::int64_t outputs_along(char axis, std::int64_t input, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding, std::int64_t dilation) {
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  const std::int64_t room = input + 2 * padding;
  if (room < reach)
    throw RuleError(fmt::format(
        "along {} the window reaches over {} elements and the padded input has {}; use a smaller kernel or "
        "more padding",
        axis, reach, room));
  return (room - reach) / stride + 1;
}

void require_at_least(Size2d size, std::int64_t smallest, const char* what) {
  if (size.h < smallest || size.w < smallest)
    throw RuleError(fmt::format("the {} must be {} or more (here {} x {})", what, smallest, size.h, size.w));
}

}  // namespace

void Window2d::check() const {
  require_at_least(kernel, 1, "kernel");
  require_at_least(stride, 1, "stride");
  require_at_least(padding, 0, "padding");
  require_at_least(dilation, 1, "dilation");
}

Size2d Window2d::outputs(Size2d input) const {
  check();
  return {outputs_along('H', input.h, kernel.h, stride.h, padding.h, dilation.h),
          outputs_along('W', input.w, kernel.w, stride.w, padding.w, dilation.w)};
}

void require_nchw(const TensorType& type) {
  if (type.shape.rank() != 4)
    throw RuleError(
        fmt::format("needs the axes N, C, H and W (here {} axes); reshape the value", type.shape.rank()));
}

void describe(Description& description, const char* key, Size2d size) {
  description.add(key, std::vector<std::int64_t>{size.h, size.w});
}

}  // namespace plexaura

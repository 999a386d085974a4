#include "core/ops/window.h"

#include <fmt/format.h>
#include <limits>

namespace plexaura {

namespace {

std::int64_t outputs_along(char axis, std::int64_t input, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding, std::int64_t dilation) {
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  std::int64_t room = 0;
  if (__builtin_add_overflow(input, 2 * padding, &room))
    throw RuleError(
        fmt::format("along {} the padded input has more elements than a 64-bit number can count", axis));
  if (room < reach)
    throw RuleError(fmt::format(
        "along {} the window reaches over {} elements and the padded input has {}; use a smaller kernel or "
        "more padding",
        axis, reach, room));
  return (room - reach) / stride + 1;
}

// The product of two numbers up to this fits into 64 bits.
constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

void require_within(Size2d size, std::int64_t smallest, const char* what) {
  if (size.h < smallest || size.w < smallest)
    throw RuleError(fmt::format("the {} must be {} or more (here {} x {})", what, smallest, size.h, size.w));
  if (size.h > largest || size.w > largest)
    throw RuleError(fmt::format("the {} must be {} or less (here {} x {})", what, largest, size.h, size.w));
}

}  // namespace

Size2d FieldForm<Size2d>::from(const std::vector<std::int64_t>& both) {
  if (both.size() != 2)
    throw RuleError(fmt::format("must be two numbers, along H and along W, not {}", both.size()));
  return {both[0], both[1]};
}

void Window2d::check() const {
  require_within(kernel, 1, "kernel");
  require_within(stride, 1, "stride");
  require_within(padding, 0, "padding");
  require_within(dilation, 1, "dilation");
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

}  // namespace plexaura

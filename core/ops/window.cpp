#include "core/ops/window.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <string_view>

namespace plexaura {

namespace {

// The window along one axis.
struct AxisWindow {
  char axis;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;  // padding of both sides together
  std::int64_t dilation;
};

std::int64_t outputs_along(const AxisWindow& window, std::int64_t input) {
  const std::int64_t reach = window.dilation * (window.kernel - 1) + 1;
  std::int64_t room = 0;
  if (__builtin_add_overflow(input, window.padding, &room))
    throw RuleError(fmt::format("along {} the padded input has more elements than a 64-bit number can count",
                                window.axis));
  if (room < reach)
    throw RuleError(fmt::format(
        "along {} the window reaches over {} elements and the padded input has {}; use a smaller kernel or "
        "more padding",
        window.axis, reach, room));
  return (room - reach) / window.stride + 1;
}

// The product of two numbers up to this fits into 64 bits.
constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

template <class Size>
void require_within(Size size, std::int64_t smallest, const char* what) {
  const auto all = list_of(size);
  const auto refuse = [&](std::int64_t bound, const char* side) {
    throw RuleError(
        fmt::format("the {} must be {} or {} (here {})", what, bound, side, fmt::join(all, " x ")));
  };
  if (std::ranges::min(all) < smallest) refuse(smallest, "more");
  if (std::ranges::max(all) > largest) refuse(largest, "less");
}

void require_axes(const TensorType& type, std::int64_t count, const char* names) {
  if (type.shape.rank() != count)
    throw RuleError(
        fmt::format("needs the axes {} (here {} axes); reshape the value", names, type.shape.rank()));
}

}  // namespace

Size2d FieldForm<Size2d>::from(const std::vector<std::int64_t>& both) {
  if (both.size() != 2)
    throw RuleError(fmt::format("must be two numbers, along H and along W, not {}", both.size()));
  return {both[0], both[1]};
}

Size3d FieldForm<Size3d>::from(const std::vector<std::int64_t>& all) {
  if (all.size() != 3)
    throw RuleError(fmt::format("must be three numbers, along D, along H and along W, not {}", all.size()));
  return {all[0], all[1], all[2]};
}

template <class Size>
void SlidingWindow<Size>::check() const {
  require_within(kernel, 1, "kernel");
  require_within(stride, 1, "stride");
  require_within(padding, 0, "padding");
  if (padding_end) require_within(*padding_end, 0, "padding at the end");
  require_within(dilation, 1, "dilation");
}

template <class Size>
Size SlidingWindow<Size>::outputs(Size input) const {
  check();
  auto counts = list_of(input);
  const std::string_view names = std::string_view("DHW").substr(3 - counts.size());
  const auto begin = list_of(padding);
  const auto end = list_of(padding_end.value_or(padding));
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = outputs_along(
        {names[i], list_of(kernel)[i], list_of(stride)[i], begin[i] + end[i], list_of(dilation)[i]},
        counts[i]);
  return std::make_from_tuple<Size>(counts);
}

template <class Size>
Size SlidingWindow<Size>::outputs_rounded_up(Size input) const {
  check();
  auto end = list_of(padding_end.value_or(padding));
  for (std::size_t i = 0; i < end.size(); ++i) end[i] += list_of(stride)[i] - 1;
  SlidingWindow longer = *this;
  longer.padding_end = std::make_from_tuple<Size>(end);
  auto counts = list_of(longer.outputs(input));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool begins_after_input =
        (counts[i] - 1) * list_of(stride)[i] >= list_of(input)[i] + list_of(padding)[i];
    if (begins_after_input) --counts[i];
  }
  return std::make_from_tuple<Size>(counts);
}

template struct SlidingWindow<Size2d>;
template struct SlidingWindow<Size3d>;

void require_nchw(const TensorType& type) { require_axes(type, 4, "N, C, H and W"); }
void require_ncdhw(const TensorType& type) { require_axes(type, 5, "N, C, D, H and W"); }

}  // namespace plexaura

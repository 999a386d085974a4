#include "tests/support/reference/windows.h"

#include <algorithm>

namespace plexaura::testing::reference {

namespace {

WindowsAlongAxis moved_over(std::int64_t input, std::int64_t kernel, std::int64_t stride,
                            std::int64_t padding, bool ceil_mode) {
  WindowsAlongAxis windows;
  const std::int64_t padded_end = input + padding;
  for (std::int64_t start = -padding;; start += stride) {
    const bool fits = start + kernel <= padded_end;
    const bool reaches_beyond = ceil_mode && start < input && start - stride + kernel < padded_end;
    if (!fits && !reaches_beyond) return windows;
    windows.push_back({std::max<std::int64_t>(0, start), std::min(input, start + kernel),
                       std::min(padded_end, start + kernel) - start});
  }
}

}  // namespace

std::vector<WindowsAlongAxis> windows_of(const Shape& x, const Pool& pool) {
  std::vector<WindowsAlongAxis> windows;
  for (std::size_t i = 0; i < pool.kernel.size(); ++i)
    windows.push_back(moved_over(x[static_cast<std::int64_t>(i) + 2], pool.kernel[i], pool.stride[i],
                                 pool.padding[i], pool.ceil_mode));
  return windows;
}

// Window i has every element that lies, if only in part, between i and i + 1 of `output` equal pieces.
std::vector<WindowsAlongAxis> adaptive_windows(const Shape& x, const Index& output) {
  std::vector<WindowsAlongAxis> windows;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::int64_t input = x[static_cast<std::int64_t>(i) + 2];
    auto& along = windows.emplace_back();
    for (std::int64_t place = 0; place < output[i]; ++place) {
      std::int64_t begin = input;
      std::int64_t end = 0;
      for (std::int64_t element = 0; element < input; ++element) {
        const bool ends_after = (element + 1) * output[i] > place * input;
        const bool begins_before = element * output[i] < (place + 1) * input;
        if (!ends_after || !begins_before) continue;
        begin = std::min(begin, element);
        end = element + 1;
      }
      along.push_back({begin, end, end - begin});
    }
  }
  return windows;
}

Tensor pooled(const Tensor& x, const std::vector<WindowsAlongAxis>& windows,
              const std::function<double(const std::vector<double>& elements, double size)>& of) {
  Index extents{x.shape()[0], x.shape()[1]};
  for (const WindowsAlongAxis& along : windows) extents.push_back(static_cast<std::int64_t>(along.size()));
  Tensor y = zeros(Shape(extents));
  for_each_index(y.shape(), [&](const Index& place) {
    std::vector<double> elements;
    double size = 1;
    Index window;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const WindowAlongAxis& along = windows[i][static_cast<std::size_t>(place[i + 2])];
      window.push_back(along.end - along.begin);
      size *= static_cast<double>(along.size);
    }
    for_each_index(Shape(window), [&](const Index& within) {
      Index from{place[0], place[1]};
      for (std::size_t i = 0; i < windows.size(); ++i)
        from.push_back(windows[i][static_cast<std::size_t>(place[i + 2])].begin + within[i]);
      elements.push_back(at(x, from));
    });
    at(y, place) = of(elements, size);
  });
  return y;
}

}  // namespace plexaura::testing::reference

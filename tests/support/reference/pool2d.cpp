#include <cmath>

#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

template <class Options>
Size2d stride_of(const Options& options) {
  return options.stride.value_or(options.kernel);
}

// Calls body(a, b, h, w) for those elements of an output's window that are within the input: (a, b) in the
// window, (h, w) in the input.
template <class Options, class Body>
void for_each_seen(const Options& of, Size2d input, const Index& place, const Body& body) {
  for (std::int64_t a = 0; a < of.kernel.h; ++a)
    for (std::int64_t b = 0; b < of.kernel.w; ++b) {
      const std::int64_t h = place[2] * stride_of(of).h - of.padding.h + a;
      const std::int64_t w = place[3] * stride_of(of).w - of.padding.w + b;
      if (h >= 0 && h < input.h && w >= 0 && w < input.w) body(a, b, h, w);
    }
}

template <class Options>
Tensor pooled_zeros(const Shape& x, const Options& of) {
  return zeros({x[0], x[1], (x[2] + 2 * of.padding.h - of.kernel.h) / stride_of(of).h + 1,
                (x[3] + 2 * of.padding.w - of.kernel.w) / stride_of(of).w + 1});
}

// Returns the divisor of the mean of a window.
double divisor(const AvgPool2dOptions& of, Size2d input, const Index& place) {
  if (of.count_include_pad) return static_cast<double>(of.kernel.h * of.kernel.w);
  double seen = 0;
  for_each_seen(of, input, place, [&](auto...) { seen += 1; });
  return seen;
}

// Returns the position in its window of the first largest element.
Tensor index_of_largest(const Tensor& x, const MaxPool2dOptions& of) {
  Tensor chosen = pooled_zeros(x.shape(), of);
  for_each_index(chosen.shape(), [&](const Index& place) {
    double largest = -HUGE_VAL;
    for_each_seen(of, spatial(x.shape()), place, [&](auto a, auto b, auto h, auto w) {
      if (at(x, place[0], place[1], h, w) <= largest) return;
      largest = at(x, place[0], place[1], h, w);
      at(chosen, place) = static_cast<double>(a * of.kernel.w + b);
    });
  });
  return chosen;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& of) {
  return max_pool2d_gather(x, index_of_largest(x, of), of);
}

Tensor max_pool2d_gather(const Tensor& x, const Tensor& index, const MaxPool2dOptions& of) {
  Tensor y = zeros(index.shape());
  for_each_index(y.shape(), [&](const Index& place) {
    for_each_seen(of, spatial(x.shape()), place, [&](auto a, auto b, auto h, auto w) {
      if (at(index, place) == static_cast<double>(a * of.kernel.w + b))
        at(y, place) = at(x, place[0], place[1], h, w);
    });
  });
  return y;
}

Tensor max_pool2d_grad(const Tensor& grad_out, const Tensor& index, Size2d input,
                       const MaxPool2dOptions& of) {
  Tensor x = zeros({grad_out.shape()[0], grad_out.shape()[1], input.h, input.w});
  for_each_index(grad_out.shape(), [&](const Index& place) {
    for_each_seen(of, input, place, [&](auto a, auto b, auto h, auto w) {
      if (at(index, place) == static_cast<double>(a * of.kernel.w + b))
        at(x, place[0], place[1], h, w) += at(grad_out, place);
    });
  });
  return x;
}

Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& of) {
  Tensor y = pooled_zeros(x.shape(), of);
  for_each_index(y.shape(), [&](const Index& place) {
    for_each_seen(of, spatial(x.shape()), place,
                  [&](auto, auto, auto h, auto w) { at(y, place) += at(x, place[0], place[1], h, w); });
    at(y, place) /= divisor(of, spatial(x.shape()), place);
  });
  return y;
}

Tensor avg_pool2d_grad(const Tensor& grad_out, Size2d input, const AvgPool2dOptions& of) {
  Tensor x = zeros({grad_out.shape()[0], grad_out.shape()[1], input.h, input.w});
  for_each_index(grad_out.shape(), [&](const Index& place) {
    for_each_seen(of, input, place, [&](auto, auto, auto h, auto w) {
      at(x, place[0], place[1], h, w) += at(grad_out, place) / divisor(of, input, place);
    });
  });
  return x;
}

}  // namespace plexaura::testing::reference

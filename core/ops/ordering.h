#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Ops that order the elements along one axis. Negative axes count from the end. They take any dtype, but median() takes
// no bool, and quantile() only floating values. NaN counts as larger than any number. Equal elements keep their order,
// in descending order, too. Indices are int64. The gradient of a value goes to the element from which it was taken.

struct ValuesAndIndices {
  Node values;
  Node indices;  // places of the values along the axis, int64
};

// The indices that put the elements in ascending order: the first one is the place of the smallest element. No gradient.
PLEXAURA_API Node argsort(Operand x, std::int64_t axis = -1, bool descending = false);
// The elements in ascending order, or in descending order.
PLEXAURA_API ValuesAndIndices sort(Operand x, std::int64_t axis = -1, bool descending = false);
// The k largest elements, the largest first; or the k smallest, the smallest first. k is from 0 to the extent.
PLEXAURA_API ValuesAndIndices topk(Operand x, std::int64_t k, std::int64_t axis = -1, bool largest = true);
// The k-th smallest element. k is from 1 to the extent.
PLEXAURA_API ValuesAndIndices kthvalue(Operand x, std::int64_t k, std::int64_t axis = -1,
                                       bool keepdims = false);
// The element in the middle, the lower one of two. If there is a NaN, it is the first NaN. The axis must not be empty.
PLEXAURA_API ValuesAndIndices median(Operand x, std::int64_t axis, bool keepdims = false);
// The median of all elements.
PLEXAURA_API Node median(Operand x);

// The value of quantile() at a place between two neighbouring elements in ascending order. `linear`
// interpolates between them, `lower` and `higher` take one of them, and `midpoint` takes their mean.
// `nearest` takes the nearer one or, if both are equally near, the one whose place is even.
enum class Interpolation : std::uint8_t { linear, lower, higher, midpoint, nearest };

struct QuantileOptions {
  std::optional<std::int64_t> axis = {};  // empty: over all elements
  bool keepdims = false;                  // the axis remains, with extent 1
  Interpolation interpolation = Interpolation::linear;
};

// The value at place q (n - 1) among the n elements in order, 0 <= q <= 1. If there is a NaN, the value is NaN. Floating.
// The axis must not be empty. 16-bit floats are interpolated in float32.
PLEXAURA_API Node quantile(Operand x, double q, QuantileOptions options = {});

// The number of elements of `sorted` that are smaller than each value or, if `right`, not larger than it. It
// is the place at which the value can be inserted. `sorted` is [N], or [..., N] for values [..., M], with its
// own order for each line of values. It must be in ascending order, which is not checked. Both have one
// dtype. The result has the type int64 and the shape of `values`. No gradient.
PLEXAURA_API Node searchsorted(Operand sorted, Operand values, bool right = false);

struct ArgSortOptions {
  bool descending = false;
  // Number of indices that are returned, from the first on; empty: all.
  std::optional<std::int64_t> count = {};
  static void fields(auto& self, auto& visitor) {
    visitor("descending", self.descending);
    visitor("count", self.count);
  }
};

// The op of argsort(), for the last axis.
class PLEXAURA_API ArgSort final : public OpOf<ArgSort, ArgSortOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "argsort"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

struct SearchSortedOptions {
  bool right = false;
  static void fields(auto& self, auto& visitor) { visitor("right", self.right); }
};

// Inputs: sorted, values.
class PLEXAURA_API SearchSorted final : public OpOf<SearchSorted, SearchSortedOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "searchsorted"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node(), Node()}; }
  void compute(const HostCall& call) const;
};

}  // namespace plexaura

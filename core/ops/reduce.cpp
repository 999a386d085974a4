#include "core/ops/reduce.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>

#include "core/loops/loops.h"
#include "core/loops/reduction.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/lines.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

Shape reduced(const Shape& shape, const ReduceOptions& options, bool keepdims) {
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (!contains(options.axes, axis))
      extents.push_back(shape[axis]);
    else if (keepdims)
      extents.push_back(1);
  }
  return Shape(std::move(extents));
}

Node reduce(Reduce::Kind kind, Operand x, ReduceOptions options) {
  const std::int64_t rank = x.node().shape().rank();
  if (options.axes.empty()) {
    options.axes.resize(static_cast<std::size_t>(rank));
    std::iota(options.axes.begin(), options.axes.end(), 0);
  }
  for (std::int64_t& axis : options.axes) axis = counted_from_front(axis, rank);
  std::ranges::sort(options.axes);
  return apply(std::make_shared<Reduce>(kind, std::move(options)), {x});
}

void require_axes(const TensorType& x, const ReduceOptions& options) {
  if (x.dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  for (const std::int64_t axis : options.axes) normalise_axis(axis, x.shape.rank());
  if (std::ranges::adjacent_find(options.axes) != options.axes.end())
    throw RuleError("an axis is named twice; name each once");
}

// Checks that no reduced axis is empty, since an empty one has no largest or smallest element.
void require_elements(const TensorType& x, const ReduceOptions& options) {
  for (const std::int64_t axis : options.axes)
    if (x.shape[axis] == 0)
      throw RuleError(fmt::format("axis {} is empty, and has no largest or smallest element", axis));
}

}  // namespace

std::string_view Reduce::name() const {
  static constexpr std::array<std::string_view, 4> names{"sum", "mean", "max", "min"};
  return names.at(static_cast<std::size_t>(kind_));
}

std::vector<TensorType> Reduce::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const TensorType& x = inputs[0];
  if (kind_ == Kind::mean) require_floating(x);
  require_axes(x, options());
  if (kind_ == Kind::max || kind_ == Kind::min) require_elements(x, options());
  return {{x.dtype, reduced(x.shape, options(), options().keepdims)}};
}

std::vector<Node> Reduce::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Shape kept = reduced(x.shape(), options(), true);
  const Node grad = reshape(request.grad_outputs[0], kept.extents());
  if (kind_ == Kind::sum) return {broadcast_to(grad, x.shape())};
  if (kind_ == Kind::mean) {
    const std::int64_t averaged = x.shape().elements() / std::max<std::int64_t>(kept.elements(), 1);
    return {broadcast_to(divide_by_count(grad, std::max<std::int64_t>(averaged, 1)), x.shape())};
  }
  const Node chosen = cast(eq(x, reshape(request.outputs[0], kept.extents())), x.dtype());
  return {grad / sum(chosen, {.axes = options().axes, .keepdims = true}) * chosen};
}

std::vector<TensorType> ArgMax::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_axes(inputs[0], options());
  require_elements(inputs[0], options());
  return {{DType::int64, reduced(inputs[0].shape, options(), options().keepdims)}};
}

Node max(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::max, x, std::move(options)); }
Node min(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::min, x, std::move(options)); }

Node argmax(Operand x, std::int64_t axis, bool keepdims) {
  axis = counted_from_front(axis, x.node().shape().rank());
  return apply(std::make_shared<ArgMax>(ReduceOptions{{axis}, keepdims}), {x});
}

Node sum(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::sum, x, std::move(options)); }
Node mean(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::mean, x, std::move(options)); }

Node divide_by_count(Operand x, std::int64_t count) {
  const DType dtype = x.node().dtype();
  const Tensor number = Tensor::scalar(count);
  if (size_of(dtype) > 2 || number.cast(dtype).cast(DType::int64) == number) return div(x, count);
  const Node quotient = div({cast(x, DType::float32), x.where()}, count);
  return cast({quotient, x.where()}, dtype);
}

Node sum_to(Operand x, const Shape& shape) {
  const Node node = x.node();
  if (node.shape() == shape) return node;
  const std::int64_t added = node.shape().rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < node.shape().rank(); ++axis)
    if (axis < added || (shape[axis - added] == 1 && node.shape()[axis] != 1)) axes.push_back(axis);
  if (axes.empty()) return reshape(x, shape.extents());
  const bool leading = axes.back() < added;
  const Node summed = sum(x, {.axes = axes, .keepdims = !leading});
  return summed.shape() == shape ? summed : reshape(summed, shape.extents());
}

namespace {

using namespace portable;

// Uses several running sums, so that additions do not wait for each other. Their order is fixed.
template <class T>
Total<T> sum_of_run(const T* src, std::int64_t step, std::int64_t length) {
  constexpr std::int64_t lanes = 8;
  Total<T> sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<Total<T>>(src[(i + lane) * step]);
  for (std::int64_t lane = 0; i < length; ++i, ++lane) sums[lane] += static_cast<Total<T>>(src[i * step]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
Total<T> sum_at(const T* src, const StridedWalk<1>& summed) {
  const std::int64_t step = summed.run_strides()[0];
  Total<T> total = 0;
  summed.runs(0, summed.elements(), [&](std::int64_t, const auto& offsets, std::int64_t length) {
    total += sum_of_run(src + offsets[0], step, length);
  });
  return total;
}

// Sums a strip of results at a time. Used if neighbouring results come from neighbouring elements, so that
// memory is read in order.
template <class T, class Finish>
void sum_strip(const T* src, const StridedWalk<1>& summed, std::int64_t count, const Finish& finish) {
  constexpr std::int64_t strip = 64;
  const std::int64_t step = summed.run_strides()[0];
  for (std::int64_t first = 0; first < count; first += strip) {
    const std::int64_t width = std::min(strip, count - first);
    Total<T> totals[strip] = {};
    summed.runs(0, summed.elements(), [&](std::int64_t, const auto& offsets, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const T* row = src + first + offsets[0] + i * step;
        for (std::int64_t j = 0; j < width; ++j) totals[j] += static_cast<Total<T>>(row[j]);
      }
    });
    for (std::int64_t j = 0; j < width; ++j) finish(first + j, totals[j]);
  }
}

template <class T, class Finish>
void reduce_elements(const HostCall& call, const ReduceOptions& options, const Finish& finish) {
  const auto [kept, summed] = part(call.inputs[0].shape(), options.axes);
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  const std::int64_t step = kept.run_strides()[0];
  constexpr std::int64_t piece = 64;
  const std::int64_t results = kept.elements();
  parallel_for(
      (results + piece - 1) / piece, piece * summed.elements(),
      [&, &kept = kept, &summed = summed](std::int64_t index) {
        const std::int64_t end = std::min(results, (index + 1) * piece);
        kept.runs(index * piece, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
          const T* from = src + offsets[0];
          if (step == 1) {
            sum_strip(from, summed, length,
                      [&](std::int64_t i, Total<T> total) { dst[first + i] = T(finish(total)); });
          } else {
            for (std::int64_t i = 0; i < length; ++i)
              dst[first + i] = T(finish(sum_at(from + i * step, summed)));
          }
        });
      });
}

void compute_sum(const HostCall& call, const ReduceOptions& options) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      reduce_elements<T>(call, options, [](Total<T> total) { return total; });
  });
}

void compute_mean(const HostCall& call, const ReduceOptions& options) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t count = call.inputs[0].elements() / result.elements();
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    reduce_elements<T>(call, options, [=](double total) { return total / static_cast<double>(count); });
  });
}

struct Larger {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};

struct Smaller {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

template <class T>
struct Found {
  T value;
  std::int64_t place;  // index among the elements seen
};

// Finds the first element that is before all others or, if there is a NaN, the first NaN.
template <class T, class Before>
Found<T> find(const T* src, const StridedWalk<1>& walk, const Before& before) {
  const std::int64_t step = walk.run_strides()[0];
  Found<T> found{src[0], 0};
  walk.runs(0, walk.elements(), [&](std::int64_t first, const auto& offsets, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      const T value = src[offsets[0] + i * step];
      const bool first_nan = is_nan(value) && !is_nan(found.value);
      if (before(value, found.value) || first_nan) found = {value, first + i};
    }
  });
  return found;
}

// Calls store(result, found) for each element of the result.
template <class T, class Before, class Store>
void search(const HostCall& call, const ReduceOptions& options, const Before& before, const Store& store) {
  const Parts parts = part(call.inputs[0].shape(), options.axes);
  const T* src = call.inputs[0].as<T>();
  const std::int64_t step = parts.kept.run_strides()[0];
  constexpr std::int64_t piece = 16;
  const std::int64_t results = parts.kept.elements();
  parallel_for((results + piece - 1) / piece, piece * parts.reduced.elements(), [&](std::int64_t index) {
    parts.kept.runs(index * piece, std::min(results, (index + 1) * piece),
                    [&](std::int64_t first, const auto& offsets, std::int64_t length) {
                      for (std::int64_t i = 0; i < length; ++i)
                        store(first + i, find(src + offsets[0] + i * step, parts.reduced, before));
                    });
  });
}

template <class Before>
void extreme(const HostCall& call, const ReduceOptions& options, const Before& before) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = call.outputs[0].as<T>();
    search<T>(call, options, before, [=](std::int64_t i, const Found<T>& found) { dst[i] = found.value; });
  });
}

}  // namespace

void Reduce::compute(const HostCall& call) const {
  if (kind_ == Kind::sum) compute_sum(call, options());
  if (kind_ == Kind::mean) compute_mean(call, options());
  if (kind_ == Kind::max) extreme(call, options(), Larger());
  if (kind_ == Kind::min) extreme(call, options(), Smaller());
}

void ArgMax::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    auto* dst = call.outputs[0].as<std::int64_t>();
    search<T>(call, options(), Larger(),
              [=](std::int64_t i, const Found<T>& found) { dst[i] = found.place; });
  });
}

}  // namespace plexaura

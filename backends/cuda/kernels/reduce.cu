// Sums, means and extremes along axes. One block computes one result; if there are few results of many
// elements, one block computes one split of a result; if a result has few elements, one thread computes it.

#include <numeric>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/splits.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/reduce.h"

namespace plexaura::cuda {

// Computes the sum of elements, divided by `divisor`.
template <class T>
struct Summing {
  using Element = T;
  using Result = T;
  using Part = Total<T>;
  Part divisor;

  PLEXAURA_DEVICE Part none() const { return 0; }
  PLEXAURA_DEVICE Part of(T element, std::int64_t) const { return static_cast<Part>(widen(element)); }
  PLEXAURA_DEVICE Part join(Part a, Part b) const { return a + b; }
  PLEXAURA_DEVICE Result finish(Part total) const { return narrow<T>(total / divisor); }
};

template <class T>
struct Found {
  Compute<T> value;
  std::int64_t place;  // index of the chosen element among those seen so far; -1: none was seen
};

// Finds the first NaN or, if there is none, the first of the largest or smallest elements.
template <class T, bool largest>
struct Finding {
  using Element = T;
  using Part = Found<T>;

  PLEXAURA_DEVICE Part none() const { return {Compute<T>(), -1}; }
  PLEXAURA_DEVICE Part of(T element, std::int64_t place) const { return {widen(element), place}; }
  PLEXAURA_DEVICE Part join(Part a, Part b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
    if (largest ? a.value > b.value : a.value < b.value) return a;
    if (largest ? b.value > a.value : b.value < a.value) return b;
    return a.place < b.place ? a : b;
  }
};

template <class T, bool largest>
struct FindingValue : Finding<T, largest> {
  using Result = T;
  PLEXAURA_DEVICE Result finish(Found<T> found) const { return narrow<T>(found.value); }
};

template <class T>
struct FindingPlace : Finding<T, true> {
  using Result = std::int64_t;
  PLEXAURA_DEVICE Result finish(Found<T> found) const { return found.place; }
};

template <class Reducer>
struct ReduceKernel {
  using T = typename Reducer::Element;
  using Part = typename Reducer::Part;
  Global<const T> src;
  Global<typename Reducer::Result> dst;
  std::int64_t count;  // number of elements that are reduced to one result
  Strides<1> kept;
  Strides<1> reduced;
  Reducer reducer;
  std::int64_t splits;
  Global<Part> parts_of_splits;  // result of each split, [splits, results]; null if there is only one split
  Global<std::uint32_t> arrived;

  PLEXAURA_DEVICE Part part_of(std::int64_t result, std::int64_t begin, std::int64_t end,
                               std::int64_t step) const {
    const std::int64_t first = kept.place(result);
    Part part = reducer.none();
    for (std::int64_t i = begin; i < end; i += step)
      part = reducer.join(part, reducer.of(src[first + reduced.place(i)], i));
    return part;
  }

  PLEXAURA_DEVICE Part part_of_splits(std::int64_t result, std::int64_t begin, std::int64_t step) const {
    Part part = reducer.none();
    for (std::int64_t split = begin; split < splits; split += step)
      part = reducer.join(part, parts_of_splits[split * dst.count() + result]);
    return part;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, Part, parts, threads);
    PLEXAURA_SHARED(block, bool, last, 1);
    const auto join = [&](Part a, Part b) { return reducer.join(a, b); };
    for (std::int64_t item = block.index(); item < dst.count() * splits; item += block.blocks()) {
      const std::int64_t split = item / dst.count();
      const std::int64_t result = item - split * dst.count();
      const std::int64_t begin = first_of_split(count, split, splits);
      const std::int64_t end = first_of_split(count, split + 1, splits);
      block.each_thread([&](int thread) { parts[thread] = part_of(result, begin + thread, end, threads); });
      join_all<Part>(block, parts, join);
      if (splits > 1) {
        block.each_thread([&](int thread) {
          if (thread > 0) return;
          parts_of_splits[item] = parts[0];
          last[0] = arrive(arrived.shared(result), static_cast<std::uint32_t>(splits));
        });
        if (!last[0]) continue;
        block.each_thread([&](int thread) { parts[thread] = part_of_splits(result, thread, threads); });
        join_all<Part>(block, parts, join);
      }
      block.each_thread([&](int thread) {
        if (thread == 0) dst[result] = reducer.finish(parts[0]);
      });
    }
  }
};

template <class Reducer>
struct ShortReduceKernel {
  ReduceKernel<Reducer> of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(of.dst.count(),
                    [&](std::int64_t i) { of.dst[i] = of.reducer.finish(of.part_of(i, 0, of.count, 1)); });
  }
};

namespace {

constexpr std::int64_t few = 64;  // number of elements up to which a block would mostly wait

std::int64_t stride_channels_last(const Shape& images, std::int64_t axis) {
  if (axis == 1) return 1;
  return stride_of(images, axis) * (axis == 0 ? 1 : images[1]);
}

// Returns the axes of the reduced value in the order in which the results are stored.
std::vector<std::int64_t> axes_in_order(const Call& call) {
  if (call.channels_last && call.outputs[0].shape().rank() == 4) return {0, 2, 3, 1};
  std::vector<std::int64_t> axes(static_cast<std::size_t>(call.inputs[0].shape().rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

template <class Reducer>
void reduce(const Call& call, const std::vector<std::int64_t>& axes, const Reducer& reducer) {
  const Shape& from = call.inputs[0].shape();
  const View& result = call.outputs[0];
  ReduceKernel<Reducer> kernel{call.inputs[0].in<typename Reducer::Element>(),
                               result.out<typename Reducer::Result>(),
                               1,
                               {},
                               {},
                               reducer,
                               1,
                               {nullptr, 0},
                               {call.arrivals, most_arrivals}};
  for (const std::int64_t axis : axes_in_order(call)) {
    const bool goes = std::ranges::find(axes, axis) != axes.end();
    const std::int64_t stride = call.channels_last ? stride_channels_last(from, axis) : stride_of(from, axis);
    (goes ? kernel.reduced : kernel.kept).add_axis(from[axis], {stride});
    if (goes) kernel.count *= from[axis];
  }
  const std::int64_t results = result.elements();
  if (kernel.count <= few) return enqueue(call, blocks_for(results), ShortReduceKernel<Reducer>{kernel});
  kernel.splits = splits_of(results, kernel.count, threads);
  if (kernel.splits > 1) kernel.parts_of_splits = {call.workspace, kernel.splits * results};
  enqueue(call, blocks_of_sums(results * kernel.splits), kernel);
}

template <bool largest>
void extreme(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    reduce(call, op_cast<Reduce>(call.op).options().axes, FindingValue<T, largest>{});
  });
}

}  // namespace

// Returns the bytes of a workspace that is large enough for any axes of a value with this number of elements.
std::size_t reduce_workspace(std::int64_t elements) {
  const std::int64_t splits = std::min(elements / (rounds_of_split * threads), enough_blocks);
  return splits > 1 ? static_cast<std::size_t>(splits) * sizeof(Found<double>) : 0;
}

void cuda_sum(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      reduce(call, op_cast<Reduce>(call.op).options().axes, Summing<T>{1});
  });
}

void cuda_mean(const Call& call) {
  const std::int64_t results = call.outputs[0].elements();
  if (results == 0) return;
  const auto count = static_cast<double>(call.inputs[0].elements()) / static_cast<double>(results);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    reduce(call, op_cast<Reduce>(call.op).options().axes, Summing<T>{count});
  });
}

void cuda_max(const Call& call) { extreme<true>(call); }
void cuda_min(const Call& call) { extreme<false>(call); }

void cuda_argmax(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    reduce(call, op_cast<ArgMax>(call.op).options().axes, FindingPlace<T>{});
  });
}

}  // namespace plexaura::cuda

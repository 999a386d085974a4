#include "core/ops/reduce.h"

#include <algorithm>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/reduction.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// Several running sums, so that additions do not wait for each other; the order is fixed.
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

// Where neighbouring results come from neighbouring elements, sums a strip of results at a time, so that
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
void reduce(const HostCall& call, const Finish& finish) {
  const auto [kept, summed] = part(call.inputs[0].shape(), op_cast<Reduce>(call.op).options().axes);
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

}  // namespace

void portable_sum(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>) reduce<T>(call, [](Total<T> total) { return total; });
  });
}

void portable_mean(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t count = call.inputs[0].elements() / result.elements();
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    reduce<T>(call, [=](double total) { return total / static_cast<double>(count); });
  });
}

}  // namespace plexaura

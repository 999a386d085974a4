#include "core/ops/softmax.h"

#include <cmath>
#include <limits>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

constexpr std::int64_t cost_of_exp = 20;

struct Spread {
  double largest;
  double total;  // of e^(x - largest)
};

template <class T>
Spread spread_of(const T* src, std::int64_t step, std::int64_t count) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) largest = std::fmax(largest, static_cast<double>(src[i * step]));
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += std::exp(static_cast<double>(src[i * step]) - largest);
  return {largest, total};
}

// Calls row(src, dst, step, count) for each line along the axis.
template <class T, class Row>
void along_axis(const HostCall& call, const Row& row) {
  const Shape& shape = call.outputs[0].shape();
  if (call.outputs[0].data == nullptr || shape.elements() == 0) return;
  const std::int64_t axis = normalise_axis(op_cast<Softmax>(call.op).options().axis, shape.rank());
  const std::int64_t count = shape[axis];
  const std::int64_t step = stride_of(shape, axis);
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  parallel_for(shape.elements() / count, count * cost_of_exp, [&](std::int64_t line) {
    const std::int64_t offset = line / step * step * count + line % step;
    row(src + offset, dst + offset, step, count);
  });
}

}  // namespace

void portable_softmax(const HostCall& call) {
  dispatch_floating(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    along_axis<T>(call, [](const T* src, T* dst, std::int64_t step, std::int64_t count) {
      const Spread spread = spread_of(src, step, count);
      for (std::int64_t i = 0; i < count; ++i)
        dst[i * step] = T(std::exp(static_cast<double>(src[i * step]) - spread.largest) / spread.total);
    });
  });
}

void portable_log_softmax(const HostCall& call) {
  dispatch_floating(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    along_axis<T>(call, [](const T* src, T* dst, std::int64_t step, std::int64_t count) {
      const Spread spread = spread_of(src, step, count);
      const double log_total = std::log(spread.total);
      for (std::int64_t i = 0; i < count; ++i)
        dst[i * step] = T(static_cast<double>(src[i * step]) - spread.largest - log_total);
    });
  });
}

}  // namespace plexaura

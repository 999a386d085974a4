#include "backends/cpu/portable/portable.h"
#include "core/loops/reduction.h"
#include "core/loops/types.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

using namespace portable;

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
  std::int64_t place;  // among the elements that were looked at
};

// The first element that is before all others; the first NaN if there is one.
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
void extreme(const HostCall& call, const Before& before) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = call.outputs[0].as<T>();
    search<T>(call, op_cast<Reduce>(call.op).options(), before,
              [=](std::int64_t i, const Found<T>& found) { dst[i] = found.value; });
  });
}

}  // namespace

void portable_max(const HostCall& call) { extreme(call, Larger()); }
void portable_min(const HostCall& call) { extreme(call, Smaller()); }

void portable_argmax(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    auto* dst = call.outputs[0].as<std::int64_t>();
    search<T>(call, op_cast<ArgMax>(call.op).options(), Larger(),
              [=](std::int64_t i, const Found<T>& found) { dst[i] = found.place; });
  });
}

}  // namespace plexaura

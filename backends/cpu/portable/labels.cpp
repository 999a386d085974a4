#include "core/ops/labels.h"

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// Whether fewer than k classes come before the label: larger logits, NaNs, and equal logits of lower classes.
template <class T>
bool among_largest(const T* logits, std::int64_t classes, std::int64_t label, std::int64_t k) {
  if (label < 0 || label >= classes) return false;
  const auto own = static_cast<Compute<T>>(logits[label]);
  if (own != own) return false;
  std::int64_t before = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const auto other = static_cast<Compute<T>>(logits[c]);
    if (!(other <= own) || (other == own && c < label)) ++before;
  }
  return before < k;
}

}  // namespace

void portable_one_hot(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t classes = result.shape()[result.shape().rank() - 1];
  const auto* labels = call.inputs[0].as<std::int64_t>();
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = result.as<T>();
    parallel_for(call.inputs[0].elements(), classes, [&](std::int64_t n) {
      for (std::int64_t c = 0; c < classes; ++c)
        dst[n * classes + c] = convert<T>(c == labels[n] ? 1.0F : 0.0F);
    });
  });
}

void portable_top_k_correct(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const std::int64_t k = op_cast<TopKCorrect>(call.op).options().k;
  const std::int64_t samples = call.inputs[0].shape()[0];
  const std::int64_t classes = call.inputs[0].shape()[1];
  const auto* labels = call.inputs[1].as<std::int64_t>();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* logits = call.inputs[0].as<T>();
    std::int64_t correct = 0;
    for (std::int64_t n = 0; n < samples; ++n)
      if (among_largest(logits + n * classes, classes, labels[n], k)) ++correct;
    *call.outputs[0].as<T>() = convert<T>(static_cast<double>(correct));
  });
}

}  // namespace plexaura

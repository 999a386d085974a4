// Ops that read labels.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/labels.h"

namespace plexaura::cuda {

template <class T>
struct OneHotKernel {
  Global<const std::int64_t> labels;
  Global<T> dst;
  std::int64_t classes;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      dst[i] = convert<T>(i % classes == labels[i / classes] ? 1.0F : 0.0F);
    });
  }
};

template <class T>
struct TopKCorrectKernel {
  Global<const T> logits;
  Global<const std::int64_t> labels;
  Global<T> correct;
  std::int64_t classes;
  std::int64_t k;

  // Whether fewer than k classes come before the label: larger logits, NaNs, and equal logits of lower classes.
  PLEXAURA_DEVICE bool among_largest(std::int64_t sample) const {
    const std::int64_t label = labels[sample];
    if (label < 0 || label >= classes) return false;
    const auto own = widen(logits[sample * classes + label]);
    if (own != own) return false;
    std::int64_t before = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const auto other = widen(logits[sample * classes + c]);
      if (!(other <= own) || (other == own && c < label)) ++before;
    }
    return before < k;
  }

  // One block.
  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, parts, threads);
    sum_all<double>(block, parts, labels.count(),
                    [&](std::int64_t i) { return among_largest(i) ? 1.0 : 0.0; });
    block.each_thread([&](int thread) {
      if (thread == 0) correct[0] = narrow<T>(static_cast<double>(parts[0]));
    });
  }
};

void cuda_one_hot(const Call& call) {
  const View& result = call.outputs[0];
  const std::int64_t classes = result.shape()[result.shape().rank() - 1];
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            OneHotKernel<T>{call.inputs[0].in<std::int64_t>(), result.out<T>(), classes});
  });
}

void cuda_top_k_correct(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, 1,
            TopKCorrectKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<std::int64_t>(),
                                 call.outputs[0].out<T>(), call.inputs[0].shape()[1],
                                 op_cast<TopKCorrect>(call.op).options().k});
  });
}

}  // namespace plexaura::cuda

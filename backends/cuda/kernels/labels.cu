// Kernels of ops that read labels.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_sum.h"
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

// Computes one sample in each block.
template <class T>
struct TopKCorrectKernel {
  Global<const T> logits;
  Global<const std::int64_t> labels;
  Global<T> correct;
  std::int64_t classes;
  std::int64_t k;
  RowSum sum;

  PLEXAURA_DEVICE auto logit(std::int64_t sample, std::int64_t c) const {
    return widen(logits[sample * classes + c]);
  }

  // True if the label is a valid class, and its logit is not NaN.
  PLEXAURA_DEVICE bool counts(std::int64_t sample) const {
    const std::int64_t label = labels[sample];
    return label >= 0 && label < classes && logit(sample, label) == logit(sample, label);
  }

  // True if class c comes before the label in the order of the logits: its logit is NaN or larger, or it is
  // equal and the class has a smaller index.
  PLEXAURA_DEVICE bool is_before(std::int64_t sample, std::int64_t c) const {
    const std::int64_t label = labels[sample];
    const auto own = logit(sample, label);
    const auto other = logit(sample, c);
    return !(other <= own) || (other == own && c < label);
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, parts, threads);
    PLEXAURA_SHARED(block, bool, last, 1);
    for (std::int64_t sample = block.index(); sample < labels.count(); sample += block.blocks()) {
      sum_all<double>(block, parts, classes,
                      [&](std::int64_t c) { return counts(sample) && is_before(sample, c) ? 1.0 : 0.0; });
      block.each_thread([&](int thread) {
        if (thread > 0) return;
        const bool among_largest = counts(sample) && parts[0] < static_cast<double>(k);
        sum.rows[sample] = among_largest ? 1.0 : 0.0;
      });
    }
    sum.add_up(block, parts, last, [&](double of_all) { correct[0] = narrow<T>(of_all); });
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
    const Shape& logits = call.inputs[0].shape();
    enqueue(call, blocks_of_rows(logits[0]),
            TopKCorrectKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<std::int64_t>(),
                                 call.outputs[0].out<T>(), logits[1],
                                 op_cast<TopKCorrect>(call.op).options().k, row_sum_of(call, logits[0])});
  });
}

}  // namespace plexaura::cuda

#include "core/ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

constexpr std::int64_t cost_of_exp = 20;

// The loss of one sample; writes its probabilities where they are wanted.
template <class T>
double sample_loss(const T* logits, std::int64_t label, T* probabilities, std::int64_t classes) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) largest = std::fmax(largest, static_cast<double>(logits[c]));
  double total = 0;
  for (std::int64_t c = 0; c < classes; ++c) total += std::exp(static_cast<double>(logits[c]) - largest);
  if (probabilities != nullptr)
    for (std::int64_t c = 0; c < classes; ++c)
      probabilities[c] = T(std::exp(static_cast<double>(logits[c]) - largest) / total);
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  return std::log(total) - (static_cast<double>(logits[label]) - largest);
}

template <class T>
void forward(const HostCall& call, const CrossEntropyOptions& options) {
  const Reduction reduction = options.reduction;
  const std::int64_t samples = call.inputs[0].shape()[0];
  const std::int64_t classes = call.inputs[0].shape()[1];
  const T* logits = call.inputs[0].as<T>();
  const auto* labels = call.inputs[1].as<std::int64_t>();
  T* loss = call.outputs[0].as<T>();
  T* probabilities = call.outputs[1].as<T>();
  constexpr std::int64_t groups =
      64;  // of samples whose losses are added up separately, whatever the threads
  std::array<double, groups> totals{};
  parallel_for(groups, (samples / groups + 1) * classes * cost_of_exp, [&](std::int64_t group) {
    for (std::int64_t n = samples * group / groups; n < samples * (group + 1) / groups; ++n) {
      T* row = probabilities == nullptr ? nullptr : probabilities + n * classes;
      const double known = sample_loss(logits + n * classes, labels[n], row, classes);
      const double of_sample = options.ignore == labels[n] ? 0 : known;
      if (reduction == Reduction::none && loss != nullptr) loss[n] = T(of_sample);
      totals[static_cast<std::size_t>(group)] += of_sample;
    }
  });
  if (reduction == Reduction::none || loss == nullptr) return;
  double total = 0;
  for (const double of_group : totals) total += of_group;
  if (reduction == Reduction::mean && samples > 0) total /= static_cast<double>(samples);
  *loss = T(total);
}

template <class T>
void backward(const HostCall& call, const CrossEntropyOptions& options) {
  const Reduction reduction = options.reduction;
  const std::int64_t samples = call.outputs[0].shape()[0];
  const std::int64_t classes = call.outputs[0].shape()[1];
  const auto* labels = call.inputs[1].as<std::int64_t>();
  const T* probabilities = call.inputs[2].as<T>();
  const T* diff_loss = call.inputs[3].as<T>();
  T* diff_logits = call.outputs[0].as<T>();
  const double weight = reduction == Reduction::mean ? 1.0 / static_cast<double>(samples) : 1.0;
  parallel_for(samples, classes, [&](std::int64_t n) {
    const auto of_loss = static_cast<double>(diff_loss[reduction == Reduction::none ? n : 0]);
    if (of_loss == 0 || options.ignore == labels[n]) {
      std::fill_n(diff_logits + n * classes, classes, T(0.F));
      return;
    }
    const bool known = labels[n] >= 0 && labels[n] < classes;
    const double scale = known ? weight * of_loss : std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t c = 0; c < classes; ++c) {
      const double excess =
          static_cast<double>(probabilities[n * classes + c]) - (c == labels[n] ? 1.0 : 0.0);
      diff_logits[n * classes + c] = T(scale * excess);
    }
  });
}

}  // namespace

void portable_softmax_cross_entropy(const HostCall& call) {
  const CrossEntropyOptions& options = op_cast<SoftmaxCrossEntropy>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { forward<T>(call, options); });
}

void portable_softmax_cross_entropy_grad(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const CrossEntropyOptions& options = op_cast<SoftmaxCrossEntropyGrad>(call.op).options();
  dispatch_floating(call.outputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { backward<T>(call, options); });
}

}  // namespace plexaura

#include "core/ops/labels.h"

#include <fmt/format.h>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"

namespace plexaura {

void require_logits_and_labels(const TensorType& logits, const TensorType& labels) {
  require_floating(logits);
  if (logits.shape.rank() != 2)
    throw RuleError(
        fmt::format("the logits need two axes, samples and classes (here {}); reshape or flatten() them",
                    logits.shape.rank()));
  if (labels.dtype != DType::int64)
    throw RuleError(
        fmt::format("the labels must be int64 class numbers, not {}; cast() them", name_of(labels.dtype)));
  if (labels.shape != Shape{logits.shape[0]})
    throw RuleError(
        fmt::format("there must be one label for each of the {} samples, shape [{}]; reshape the labels",
                    logits.shape[0], logits.shape[0]));
}

std::vector<TensorType> OneHot::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (inputs[0].dtype != DType::int64)
    throw RuleError(
        fmt::format("the labels must be int64 class numbers, not {}; cast() them", name_of(inputs[0].dtype)));
  if (options().classes < 0) throw RuleError("the number of classes must not be negative");
  std::vector<std::int64_t> extents = inputs[0].shape.extents();
  extents.push_back(options().classes);
  return {{options().dtype, Shape(std::move(extents))}};
}

std::vector<TensorType> TopKCorrect::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_logits_and_labels(inputs[0], inputs[1]);
  if (options().k < 1) throw RuleError(fmt::format("k must be 1 or more, not {}", options().k));
  return {{inputs[0].dtype, Shape{}}};
}

Node one_hot(Operand labels, std::int64_t classes, DType dtype) {
  return apply(std::make_shared<OneHot>(OneHotOptions{classes, dtype}), {labels});
}

Node top_k_correct(Operand logits, Operand labels, std::int64_t k) {
  return apply(std::make_shared<TopKCorrect>(TopKCorrectOptions{k}), {logits, labels});
}

namespace {

using namespace portable;

// True if fewer than k classes come before the label. NaNs and larger logits come before it, and so do equal
// logits of classes with a smaller index. False if the label names no class, or its logit is NaN.
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

void OneHot::compute(const HostCall& call) const {
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

void TopKCorrect::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const std::int64_t k = options().k;
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

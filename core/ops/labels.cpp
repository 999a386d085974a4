#include "core/ops/labels.h"

#include <fmt/format.h>

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

}  // namespace plexaura

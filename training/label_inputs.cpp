#include "training/label_inputs.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"
#include "core/graph/leaf.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

namespace {

void check_range(const LabelInput& input, const Tensor& labels) {
  if (labels.dtype() != DType::int64) return;  // refused where it is fed
  const std::span<const std::int64_t> values = labels.as<std::int64_t>();
  const auto wrong =
      std::ranges::find_if(values, [&](std::int64_t label) { return label < 0 || label >= input.classes; });
  if (wrong == values.end()) return;
  throw UserError(
      fmt::format("element {} of '{}' is the label {} and there are {} classes, so that labels go from "
                  "0 to {}; correct the data",
                  wrong - values.begin(), input.name, *wrong, input.classes, input.classes - 1));
}

}  // namespace

std::vector<LabelInput> label_inputs(const Graph& graph) {
  std::vector<LabelInput> inputs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(record.op.get());
    if (loss == nullptr || loss->options().reduction == Reduction::none) continue;
    const Leaf* labels = as_leaf(*graph.record(record.inputs[1].node).op);
    if (labels == nullptr || labels->kind() != LeafKind::input) continue;
    inputs.push_back({labels->label(), graph.type(record.inputs[0]).shape[1]});
  }
  return inputs;
}

void check_labels(std::span<const LabelInput> inputs, std::span<const Feed> feeds) {
  for (const LabelInput& input : inputs)
    for (const Feed& feed : feeds)
      if (feed.name() == input.name) check_range(input, feed.tensor());
}

}  // namespace plexaura

#include "training/programs/label_inputs.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/leaf.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

namespace {

bool is_allowed(const LabelInput& input, std::int64_t label) {
  return input.ignore == label || (label >= 0 && label < input.classes);
}

void check_range(const LabelInput& input, const Tensor& labels) {
  if (labels.dtype() != DType::int64) return;  // VM::run() will refuse such a feed
  const std::span<const std::int64_t> values = labels.as<std::int64_t>();
  const auto wrong =
      std::ranges::find_if(values, [&](std::int64_t label) { return !is_allowed(input, label); });
  if (wrong == values.end()) return;
  const std::string rule_and_remedy =
      input.ignore ? fmt::format(", or are {} to be ignored; correct the data", *input.ignore)
                   : fmt::format(
                         "; correct the data, or give softmax_cross_entropy() the option {{.ignore = {}}}, "
                         "which leaves such samples out of the loss",
                         *wrong);
  throw UserError(fmt::format(
      "element {} of '{}' is the label {} and there are {} classes, so that labels go from "
      "0 to {}{}",
      wrong - values.begin(), input.name, *wrong, input.classes, input.classes - 1, rule_and_remedy));
}

}  // namespace

std::vector<LabelInput> label_inputs(const Graph& graph) {
  std::vector<LabelInput> inputs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(record.op.get());
    if (loss == nullptr) continue;
    const CrossEntropyOptions& options = loss->options();
    if (options.reduction == Reduction::none && !options.ignore) continue;
    const Leaf* labels = as_leaf(*graph.record(record.inputs[1].node).op);
    if (labels == nullptr || labels->kind() != LeafKind::input) continue;
    inputs.push_back({labels->label(), graph.type(record.inputs[0]).shape[1], options.ignore});
  }
  return inputs;
}

void check_labels(std::span<const LabelInput> inputs, std::span<const Feed> feeds) {
  for (const LabelInput& input : inputs)
    for (const Feed& feed : feeds)
      if (feed.name() == input.name) check_range(input, feed.tensor());
}

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/vm/feed.h"

namespace plexaura {

// An input of a graph that an op SoftmaxCrossEntropy takes as its labels.
struct LabelInput {
  std::string name;
  std::int64_t classes = 0;
  std::optional<std::int64_t> ignore = {};  // a label that is not a class but is allowed
};

// Returns the inputs that ops SoftmaxCrossEntropy of the graph take as labels and whose labels must be checked: one label
// out of range makes the loss of its sample NaN, and with it the loss of all samples. An input is left out if its op has
// the reduction `none` and no option `ignore`, because the model may then itself drop samples with labels out of range.
std::vector<LabelInput> label_inputs(const Graph& graph);

// Throws UserError if a label is out of range. The message names the first one.
void check_labels(std::span<const LabelInput> inputs, std::span<const Feed> feeds);

}  // namespace plexaura

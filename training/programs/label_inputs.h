#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/vm/feed.h"

namespace plexaura {

// An input of a graph that softmax_cross_entropy() takes as its labels.
struct LabelInput {
  std::string name;
  std::int64_t classes = 0;
  std::optional<std::int64_t> ignore = {};  // a label that is not a class but is allowed
};

// Returns the label inputs of the graph for which one label out of range makes the whole loss NaN. If the loss of each
// sample is kept and no label is ignored, an input is not returned, because the model may leave out such samples.
std::vector<LabelInput> label_inputs(const Graph& graph);

// Throws UserError if a label is out of range. The message names the first one.
void check_labels(std::span<const LabelInput> inputs, std::span<const Feed> feeds);

}  // namespace plexaura

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
  std::optional<std::int64_t> ignore = {};  // a label that is no class, but may be there
};

// Those of which a label out of range makes a whole loss NaN: not where the loss of each sample is kept and no label is
// ignored, for a model may leave out some of them.
std::vector<LabelInput> label_inputs(const Graph& graph);

// Throws UserError that names the first label out of range.
void check_labels(std::span<const LabelInput> inputs, std::span<const Feed> feeds);

}  // namespace plexaura

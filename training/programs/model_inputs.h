#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/step/training_step.h"
#include "training/data/sample_source.h"

namespace plexaura {

// The inputs of a model for one micro-batch: a node of shape [samples, ...] for each field of the data. Floating fields
// have the dtype of the store.
class ModelInputs {
 public:
  ModelInputs(Graph& graph, std::span<const Field> fields, std::int64_t samples, DType dtype);

  // Makes the inputs for one batch, with exactly its types. samples() is then the longest first axis.
  ModelInputs(Graph& graph, std::span<const Feed> batch);

  Graph& graph() const { return graph_; }
  std::int64_t samples() const { return samples_; }
  // Throws UserError for a field that the data does not have; the message names the most similar field.
  Node operator[](std::string_view field) const;
  bool has(std::string_view field) const;

 private:
  Graph& graph_;
  std::int64_t samples_;
  std::vector<std::pair<std::string, Node>> nodes_;
};

// Builds a model and its loss for one micro-batch. It is called for each program, with graphs for training and for
// inference, and to find out the names of the metrics. What it builds must depend only on the inputs.
using ModelBuilder = std::function<LossOutputs(const ModelInputs& inputs)>;

// A model, and the graph that contains its nodes.
struct BuiltModel {
  std::unique_ptr<Graph> graph;
  LossOutputs outputs;
};

// Builds the model for one micro-batch, in the precision of the store.
BuiltModel build_model(const ModelBuilder& model, std::span<const Field> fields, std::int64_t samples,
                       const ParameterStore& store, Mode mode);
// Returns a copy of the model and its graph.
BuiltModel copied(const LossOutputs& model);
// Converts a float32 model with in_mixed_precision(). Throws what check_model() throws.
BuiltModel narrowed(const Graph& graph, const LossOutputs& model, const ParameterStore& store);

// Returns the feeds of a program: the fields of a micro-batch, with floating fields converted to `dtype`. Values that need
// no conversion are not copied and must outlive the feeds.
std::vector<Feed> feeds_of(std::span<const Field> fields, const std::vector<Tensor>& values, DType dtype);

}  // namespace plexaura

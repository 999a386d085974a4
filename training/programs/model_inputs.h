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

// The inputs of a model for one micro-batch: a node for each field of the data, [samples, ...]. Floating ones
// have the dtype of the store.
class ModelInputs {
 public:
  ModelInputs(Graph& graph, std::span<const Field> fields, std::int64_t samples, DType dtype);

  Graph& graph() const { return graph_; }
  std::int64_t samples() const { return samples_; }
  // UserError that names the nearest field for one that the data does not have.
  Node operator[](std::string_view field) const;

 private:
  Graph& graph_;
  std::int64_t samples_;
  std::vector<std::pair<std::string, Node>> nodes_;
};

// Builds a model and its loss for one micro-batch. Called for each program, with graphs of either mode, and to learn
// the names of the metrics: what it builds depends on the inputs alone.
using ModelBuilder = std::function<LossOutputs(const ModelInputs& inputs)>;

// A model with the graph that it stands in.
struct BuiltModel {
  std::unique_ptr<Graph> graph;
  LossOutputs outputs;
};

// The model for one micro-batch, in the precision of the store.
BuiltModel build_model(const ModelBuilder& model, std::span<const Field> fields, std::int64_t samples,
                       const ParameterStore& store, Mode mode);
// A model of float32 as in_mixed_precision(). Throws UserError where check_model() does.
BuiltModel narrowed(const Graph& graph, const LossOutputs& model, const ParameterStore& store);

// What a program is fed: the fields of a micro-batch, floating ones converted to `dtype`. Those that need no
// conversion are referred to and must outlive the feeds.
std::vector<Feed> feeds_of(std::span<const Field> fields, const std::vector<Tensor>& values, DType dtype);

}  // namespace plexaura

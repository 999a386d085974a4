#include "training/programs/model_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/compile/mixed_precision.h"
#include "core/compile/passes.h"
#include "training/programs/optimizer_parts.h"

namespace plexaura {

namespace {

// Returns the dtype of a field's input in the graph.
DType fed_dtype(DType of_field, DType of_store) { return is_floating(of_field) ? of_store : of_field; }

std::vector<Value> roots_of(const LossOutputs& model) {
  std::vector<Value> roots{model.loss.value()};
  for (const Metric& metric : model.metrics)
    roots.push_back((metric.mean.is_empty() ? metric.sum : metric.mean).value());
  if (!model.validation.sums.is_empty()) roots.push_back(model.validation.sums.value());
  if (!model.weight.is_empty()) roots.push_back(model.weight.value());
  return roots;
}

// Returns the model whose nodes are the roots, in the order of roots_of().
BuiltModel of_roots(PassGraph made, const LossOutputs& model) {
  BuiltModel built{std::move(made.graph), model};
  const auto moved = [&](std::size_t root) { return Node(*built.graph, made.roots[root]); };
  std::size_t next = 0;
  built.outputs.loss = moved(next++);
  for (Metric& metric : built.outputs.metrics)
    (metric.mean.is_empty() ? metric.sum : metric.mean) = moved(next++);
  if (!model.validation.sums.is_empty()) built.outputs.validation.sums = moved(next++);
  if (!model.weight.is_empty()) built.outputs.weight = moved(next++);
  return built;
}

}  // namespace

ModelInputs::ModelInputs(Graph& graph, std::span<const Field> fields, std::int64_t samples, DType dtype)
    : graph_(graph), samples_(samples) {
  for (const Field& field : fields)
    nodes_.emplace_back(field.name, graph.input(field.name, {fed_dtype(field.type.dtype, dtype),
                                                             batched(samples, field.type.shape)}));
}

ModelInputs::ModelInputs(Graph& graph, std::span<const Feed> batch)
    : graph_(graph), samples_(longest_first_axis(batch)) {
  for (const Feed& feed : batch) nodes_.emplace_back(feed.name(), graph.input(feed.name(), feed.type()));
}

bool ModelInputs::has(std::string_view field) const {
  return std::ranges::any_of(nodes_, [&](const auto& named) { return named.first == field; });
}

Node ModelInputs::operator[](std::string_view field) const {
  std::vector<std::string> known;
  for (const auto& [name, node] : nodes_) {
    if (name == field) return node;
    known.push_back(name);
  }
  if (known.empty())
    throw UserError(fmt::format("the model asks for '{}', and the data has no fields", field));
  throw UserError(fmt::format("the model asks for '{}', and the data has {}{}", field, fmt::join(known, ", "),
                              did_you_mean(field, known)));
}

BuiltModel build_model(const ModelBuilder& model, std::span<const Field> fields, std::int64_t samples,
                       const ParameterStore& store, Mode mode) {
  auto graph = std::make_unique<Graph>(mode);
  LossOutputs outputs = model(ModelInputs(*graph, fields, samples, store.dtype()));
  if (store.types().is_mixed()) return narrowed(*graph, outputs, store);
  return {std::move(graph), std::move(outputs)};
}

BuiltModel copied(const LossOutputs& model) {
  return of_roots(copy(model.loss.graph(), roots_of(model)), model);
}

BuiltModel narrowed(const Graph& graph, const LossOutputs& model, const ParameterStore& store) {
  check_model(graph, model, store);
  return of_roots(in_mixed_precision(graph, roots_of(model), store.types().precision()), model);
}

std::vector<Feed> feeds_of(std::span<const Field> fields, const std::vector<Tensor>& values, DType dtype) {
  if (values.size() != fields.size())
    throw UserError(fmt::format(
        "samples had {} fields at first and have {} now; SampleSource::fields() must stay the same",
        fields.size(), values.size()));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const DType fed = fed_dtype(values[i].dtype(), dtype);
    if (values[i].dtype() == fed)
      feeds.emplace_back(fields[i].name, values[i]);
    else
      feeds.emplace_back(fields[i].name, values[i].cast(fed));
  }
  return feeds;
}

}  // namespace plexaura

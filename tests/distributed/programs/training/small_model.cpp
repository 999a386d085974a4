#include "tests/distributed/programs/training/small_model.h"

#include <string>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/normalise_image.h"
#include "core/ops/pool2d.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura::testing {
namespace {

// Weights by name, added when a layer is declared and looked up when it is built.
struct Specs {
  DType dtype;
  std::vector<ParameterSpec> list;

  void layer(const std::string& name, std::vector<std::int64_t> weight, std::int64_t outputs) {
    add(name + ".weight", Shape(std::move(weight)), Initialiser::he_uniform());
    add(name + ".bias", Shape{outputs}, Initialiser::zeros());
  }
  void dense(const std::string& name, std::int64_t in, std::int64_t out) { layer(name, {out, in}, out); }

 private:
  void add(std::string name, Shape shape, Initialiser start) {
    list.push_back({std::move(name), {dtype, std::move(shape)}, ParameterRole::trainable, start});
  }
};

Node weight(const std::vector<ParameterSpec>& specs, Graph& graph, const std::string& name) {
  for (const ParameterSpec& spec : specs)
    if (spec.name == name) return graph.parameter(name, spec.type);
  throw InternalError("the small model has no " + name);
}

Node dense(const std::vector<ParameterSpec>& specs, const std::string& name, const Node& x) {
  Graph& graph = x.graph();
  return matmul(x, weight(specs, graph, name + ".weight"), {.transpose_b = true}) +
         weight(specs, graph, name + ".bias");
}

Node convolve(const std::vector<ParameterSpec>& specs, const std::string& name, const Node& x) {
  Graph& graph = x.graph();
  const Node y = conv2d(x, weight(specs, graph, name + ".weight"), weight(specs, graph, name + ".bias"), {});
  return max_pool2d(relu(y), {.kernel = {2, 2}});
}

// Returns the samples; bytes are scaled to 0 to 1.
Node samples_of(const ModelInputs& inputs, DType dtype) {
  const Node samples = inputs["samples"];
  return samples.dtype() == DType::uint8 ? normalise_image(samples, {.dtype = dtype}) : samples;
}

LossOutputs loss_of(const Node& logits, const Node& labels) {
  return {.loss = softmax_cross_entropy(logits, labels),
          .metrics = {{.name = "accuracy", .sum = top_k_correct(logits, labels)}}};
}

SmallModel make_mlp(const Shape& sample, std::int64_t classes, DType dtype) {
  constexpr std::int64_t hidden_units = 24;
  Specs specs{dtype, {}};
  specs.dense("hidden", sample.elements(), hidden_units);
  specs.dense("out", hidden_units, classes);
  const auto build = [list = specs.list, dtype](const ModelInputs& inputs) {
    const Node hidden = dropout(relu(dense(list, "hidden", flatten(samples_of(inputs, dtype)))), {.p = 0.3});
    return loss_of(dense(list, "out", hidden), inputs["labels"]);
  };
  return {specs.list, build};
}

SmallModel make_cnn(const Shape& sample, std::int64_t classes, DType dtype) {
  constexpr std::int64_t first_channels = 6;
  constexpr std::int64_t second_channels = 8;
  constexpr std::int64_t hidden_units = 16;
  const auto pooled = [](std::int64_t extent) { return (extent - 2) / 2; };
  const std::int64_t features = second_channels * pooled(pooled(sample[1])) * pooled(pooled(sample[2]));
  Specs specs{dtype, {}};
  specs.layer("conv1", {first_channels, sample[0], 3, 3}, first_channels);
  specs.layer("conv2", {second_channels, first_channels, 3, 3}, second_channels);
  specs.dense("hidden", features, hidden_units);
  specs.dense("out", hidden_units, classes);
  const auto build = [list = specs.list, dtype](const ModelInputs& inputs) {
    const Node images = convolve(list, "conv2", convolve(list, "conv1", samples_of(inputs, dtype)));
    const Node hidden = relu(dense(list, "hidden", dropout(flatten(images))));
    return loss_of(dense(list, "out", hidden), inputs["labels"]);
  };
  return {specs.list, build};
}

}  // namespace

SmallModel make_small_model(std::string_view name, const Shape& sample, std::int64_t classes, DType dtype) {
  if (name == "mlp") return make_mlp(sample, classes, dtype);
  if (name == "cnn") return make_cnn(sample, classes, dtype);
  throw UserError("the small models are mlp and cnn, not " + std::string(name));
}

}  // namespace plexaura::testing

#include "models/zoo/model.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/ops/binary.h"
#include "core/ops/labels.h"
#include "core/ops/losses.h"
#include "core/ops/shape.h"
#include "models/zoo/language_model.h"
#include "models/zoo/multi_label.h"
#include "models/zoo/reconstruction.h"
#include "models/zoo/regression.h"
#include "models/zoo/segmentation.h"

namespace plexaura {

Node Model::operator()(Operand x) const {
  Graph& graph = x.node().graph();
  std::optional<Graph::WithOrigin> origin;
  if (!info_.origin.file.empty()) origin.emplace(graph, info_.origin);
  const auto call = enter_unseen(x);
  if (x.node().dtype() != DType::uint8) return forward(x);
  return forward({normalise_image(x, {info_.pixels, dtype()}), x.where()});
}

namespace {

LossOutputs weighted_loss(const ModelInfo& info, Operand outputs, Operand labels) {
  if (!info.class_weights)
    throw UserError(
        "model.class_weights is balanced, and the training samples of each class were not counted here; list "
        "the weights, or give them to make_model()");
  const auto& weights = *info.class_weights;
  const CrossEntropyOptions options{.ignore = info.ignored_class, .label_smoothing = info.label_smoothing};
  if (weights.empty()) {
    const WeightedLoss loss = weighted_cross_entropy(outputs, labels, options);
    return {.loss = loss.sum, .weight = loss.weight};
  }
  Tensor tensor(TensorType{DType::float64, {std::ssize(weights)}});
  std::ranges::copy(weights, tensor.as<double>().begin());
  const Node of_classes = outputs.node().graph().constant(tensor.cast(outputs.node().dtype()));
  // As in PyTorch, the loss against targets is divided by the number of samples.
  if (labels.node().dtype() != DType::int64)
    return {.loss = softmax_cross_entropy(outputs, labels, {of_classes, outputs.where()},
                                          {.label_smoothing = info.label_smoothing})};
  const WeightedLoss loss = weighted_cross_entropy(outputs, labels, {of_classes, outputs.where()}, options);
  return {.loss = loss.sum, .weight = loss.weight};
}

LossOutputs build_segmentation(const ModelInfo& info, Operand outputs, Operand targets) {
  const PixelRows pixels = pixel_rows(outputs.node(), targets.node());
  LossOutputs made = weighted_loss(info, {pixels.logits, outputs.where()}, {pixels.labels, targets.where()});
  made.validation = segmentation_sums(pixels, info.ignored_class);
  return made;
}

// Returns labels as rows that ideal outputs would have. Returns targets unchanged.
Node targets_of(Operand outputs, Operand labels) {
  if (labels.node().dtype() != DType::int64) return labels.node();
  return one_hot(labels, outputs.node().shape()[1], outputs.node().dtype());
}

void add_accuracies(const Model& model, Operand outputs, Operand labels, LossOutputs& result) {
  constexpr std::int64_t top = 5;
  result.metrics.push_back({.name = "accuracy", .sum = top_k_correct(outputs, labels, 1)});
  if (model.classes() > top)
    result.metrics.push_back({.name = "accuracy_top5", .sum = top_k_correct(outputs, labels, top)});
}

// Returns the loss. `labels` are int64 [N], or targets [N, classes] of the outputs' dtype.
LossOutputs loss_of(const ModelInfo& info, Operand outputs, Operand labels) {
  if (info.loss == Loss::softmax_cross_entropy) {
    if (!info.class_weights || !info.class_weights->empty()) return weighted_loss(info, outputs, labels);
    return {.loss = softmax_cross_entropy(outputs, labels, {.label_smoothing = info.label_smoothing})};
  }
  const Operand wanted{targets_of(outputs, labels), outputs.where()};
  return {.loss = info.loss == Loss::squared_error ? squared_error(outputs, wanted)
                                                   : binary_cross_entropy_with_logits(outputs, wanted)};
}

}  // namespace

std::string_view name_of(Task task) {
  static constexpr std::array<std::string_view, 6> names{"classification", "regression",     "multi_label",
                                                         "reconstruction", "language_model", "segmentation"};
  return names.at(static_cast<std::size_t>(task));
}

bool returns_images(Task task) { return task == Task::reconstruction || task == Task::segmentation; }

const char* name_of_outputs(Task task) {
  if (task == Task::classification || task == Task::segmentation) return "classes";
  if (task == Task::reconstruction) return "values";
  return task == Task::language_model ? "tokens" : "targets";
}

LossOutputs build_loss(const Model& model, Operand outputs, Operand labels) {
  const Graph::Scope scope(outputs.node().graph(), "loss");
  if (model.info().task == Task::regression) return build_regression(model, outputs, labels);
  if (model.info().task == Task::multi_label) return build_multi_label(outputs, labels);
  if (model.info().task == Task::reconstruction) return build_reconstruction(model, outputs, labels);
  if (model.info().task == Task::language_model) return build_language_model(outputs, labels);
  if (model.info().task == Task::segmentation) return build_segmentation(model.info(), outputs, labels);
  LossOutputs result = loss_of(model.info(), outputs, labels);
  add_accuracies(model, outputs, labels, result);
  return result;
}

LossOutputs build_mixed_loss(const Model& model, Operand outputs, Operand labels, Operand partner_labels,
                             Operand share) {
  const Graph::Scope scope(outputs.node().graph(), "loss");
  const Node of_label = reshape(share, {labels.node().shape()[0], 1});
  const Node of_partner = sub(1, of_label);
  const Node targets =
      mul(of_label, targets_of(outputs, labels)) + mul(of_partner, targets_of(outputs, partner_labels));
  LossOutputs result = loss_of(model.info(), outputs, {targets, outputs.where()});
  add_accuracies(model, outputs, labels, result);
  return result;
}

Field expected_field(const Model& model) {
  if (model.info().task == Task::classification) return {"labels", {DType::int64, {}}};
  if (model.info().task == Task::reconstruction) return {"samples", {DType::uint8, model.sample_shape()}};
  if (model.info().task == Task::language_model) return {"targets", {DType::int64, model.sample_shape()}};
  if (model.info().task == Task::segmentation) {
    const Shape& image = model.sample_shape();
    return {"targets", {DType::uint8, {image[1], image[2]}}};
  }
  return {"targets", {DType::float32, {model.classes()}}};
}

ModelBuilder builder_of(Model& model) {
  return [&model](const ModelInputs& inputs) {
    const Node outputs = model(inputs["samples"]);
    // A reconstruction has separate targets if its samples differ from them, for example by noise.
    const bool has_images = model.info().task == Task::reconstruction && inputs.has("targets");
    const Node labels = inputs[has_images ? "targets" : expected_field(model).name];
    if (inputs.has("partner_labels"))
      return build_mixed_loss(model, outputs, labels, inputs["partner_labels"], inputs["label_share"]);
    return build_loss(model, outputs, labels);
  };
}

}  // namespace plexaura

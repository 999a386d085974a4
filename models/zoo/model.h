#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/normalise_image.h"
#include "core/step/training_step.h"
#include "models/config/key_texts.h"
#include "models/layers/layer.h"
#include "training/programs/programs.h"

namespace plexaura {

// The task of a model, which defines the meaning of its outputs.
enum class Task : std::uint8_t {
  classification,  // a score for each class; a sample has one class
  regression,      // a number for each target
  multi_label,     // a score for each label; a sample has any number of labels
  reconstruction,  // the values of the sample itself, or of an image that belongs to it
  language_model,  // for each position of a text, a score for each token that may follow
  segmentation,    // for each pixel of an image, a score for each class; a pixel has one class
};
std::string_view name_of(Task task);
// Returns the name of the outputs of a task: "classes", "targets", "values" or "tokens".
const char* name_of_outputs(Task task);
// True if a model returns values for each pixel of its input.
bool returns_images(Task task);

// The loss that training minimises: a mean over the samples.
enum class Loss : std::uint8_t {
  softmax_cross_entropy,
  squared_error,  // squared error of the outputs and one-hot labels, summed over classes
  // The cross-entropy of the sigmoid of each output. For classes it is taken against one-hot labels and
  // summed over classes. For multi_label and reconstruction it is a mean over samples and outputs.
  binary_cross_entropy,
  // Errors of the outputs of a regression or the pixels of a reconstruction, as means over samples and
  // outputs.
  mse,
  l1,
  huber,
};

struct ModelInfo {
  Shape sample_shape;        // shape of one sample, without the batch: [4], [1, 28, 28]
  std::int64_t classes = 0;  // the number of outputs: classes, targets, labels, values of a sample, or tokens
  Loss loss = Loss::softmax_cross_entropy;
  PixelScale pixels = {};  // mean and standard deviation by which samples of bytes are normalised
  Origin origin = {};      // the model's place in a YAML file; empty for a model that was written in C++
  Task task = Task::classification;
  // For each output of a regression, the size of one unit of the output in the unit in which errors are
  // reported. It is the standard deviation of a target that was standardised. Empty: 1 for all outputs.
  std::vector<double> target_units = {};
  // Used by softmax_cross_entropy: see CrossEntropyOptions.
  double label_smoothing = 0;
  // The weight of each class, used by softmax_cross_entropy. The loss is divided by the sum of the weights of
  // all labels of a step. Empty list: all classes count alike. The loss is then a mean over samples; for a
  // segmentation, over pixels. std::nullopt: the weights depend on samples that are not known, and
  // build_loss() throws.
  std::optional<std::vector<double>> class_weights = std::vector<double>{};
  // The label of pixels that count neither in the loss nor in the metrics of a segmentation. It need not be a
  // class.
  std::optional<std::int64_t> ignored_class = {};
};

// A network that distinguishes classes, predicts numbers or labels, or reconstructs its samples: [N, sample
// shape...] -> [N, classes], for reconstruction also [N, sample shape...], for segmentation [N, classes, H,
// W]; or a language model: int64 [N, positions] -> [N, positions, classes]. Name its parameters with
// specs_of() or make_store() before calling it. One object serves every graph, for training and inference,
// with any batch size. A call of a model whose parameters are named changes nothing in the model: several
// threads may call it at the same time, each with its own graph.
class Model : public Module {
 public:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}

  const ModelInfo& info() const { return info_; }
  const Shape& sample_shape() const { return info_.sample_shape; }
  std::int64_t classes() const { return info_.classes; }

  // Extends the graph of x by the network and returns its outputs, which are logits if the loss is a cross-entropy.
  // Samples of uint8, which are images, are normalised first. Other samples are not changed; they must have the dtype of
  // the parameters, or int64 for a language model. The origin of the nodes is that of info(), or that of x.
  Node operator()(Operand x) const;

  // Returns the model for `samples` sequences whose positions come one by one, at most those of sample_shape(): see
  // layers::Layer::incremental(). Null for all models but lists of layers with the task language_model.
  virtual std::unique_ptr<layers::IncrementalLayer> incremental(std::int64_t /*samples*/) const {
    return nullptr;
  }

 protected:
  virtual Node forward(Operand x) const = 0;

 private:
  ModelInfo info_;
};

// The values of the keys that every section `model` has.
struct ModelKeys {
  std::string name = {};
  Task task = Task::classification;
  Loss loss = Loss::softmax_cross_entropy;
  double label_smoothing = 0;
  // std::nullopt means "balanced".
  std::optional<std::vector<double>> class_weights = std::vector<double>{};
  std::optional<std::int64_t> ignored_class = {};  // see ModelInfo::ignored_class
};
ModelKeys read_model_keys(const Section& yaml);
// Reads only the key `task` of a section `model`.
Task read_task(const Section& yaml);
// Reads only the key `class_weights` of a section `model`. Returns true if it is "balanced".
bool balances_classes(const Section& yaml);

// Returns the descriptions of all keys of the section `model`, and of a layer in `model.layers[]`.
std::vector<KeyText> model_key_texts();

// Makes the model that a section `model` describes; model_key_texts() lists its keys. Tries the model on one
// sample. Throws UserError, with line and column, for a wrong key, and for layers that do not fit each other,
// the samples or the classes. For `classes`, `pixels` and `target_units` see ModelInfo; for reconstruction
// `classes` is not read. `balanced_weights` has the weights of the classes if the key `class_weights` is
// "balanced". If it is empty, they are not known, and build_loss() throws.
std::unique_ptr<Model> make_model(const Section& yaml, const Shape& sample_shape, std::int64_t classes,
                                  PixelScale pixels, std::vector<double> target_units = {},
                                  std::vector<double> balanced_weights = {});
// Makes the model of a whole configuration. Images are normalised as its section `data` describes.
std::unique_ptr<Model> make_model(const Config& config, const Shape& sample_shape, std::int64_t classes);

// Returns the model's loss. A classification has the metric "accuracy": the share of samples whose label has
// the largest output. With more than five classes it also has "accuracy_top5": the share of samples whose
// label is among the five largest outputs. For other tasks see build_regression(), build_multi_label(),
// build_reconstruction() and build_language_model(). The metrics of a segmentation are those of
// segmentation_sums().
//   outputs of the model; labels int64 [N], targets [N, classes] of the outputs' dtype, or the samples. For a language
//   model: targets int64 [N, positions]. For a segmentation: targets uint8 or int64 [N, H, W], the class of each pixel.
// Throws UserError if the weights of the classes are not known.
LossOutputs build_loss(const Model& model, Operand outputs, Operand labels);
// Returns the loss of a classification whose samples are mixtures of two samples
// (training/data/mixed_samples.h): `share` [N] is the share of the label in the target, and the rest is that
// of `partner_labels`. With class weights, the loss is divided by the number of samples. The metrics compare
// the outputs with `labels`.
LossOutputs build_mixed_loss(const Model& model, Operand outputs, Operand labels, Operand partner_labels,
                             Operand share);

// Returns the field of the data that build_loss() needs: "labels" for a classification, "samples" for a
// reconstruction, as bytes, and "targets" for other tasks, as bytes for a segmentation. Its type is that of
// one sample. For a reconstruction the data may also have "targets", which are images of bytes; builder_of()
// then takes them instead.
Field expected_field(const Model& model);

// Returns a ModelBuilder for a Trainer. It calls build_loss() for the model with the fields "samples" and
// expected_field() or, if there is a field "partner_labels", build_mixed_loss(). The model must outlive the
// result.
ModelBuilder builder_of(Model& model);

}  // namespace plexaura

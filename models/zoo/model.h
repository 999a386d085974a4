#pragma once

#include <memory>
#include <string>

#include "core/ops/normalise_image.h"
#include "core/step/training_step.h"
#include "models/config/key_texts.h"
#include "models/layers/layer.h"
#include "training/programs/programs.h"

namespace plexaura {

// What a model is trained to make small: a mean over the samples.
enum class Loss : std::uint8_t {
  softmax_cross_entropy,
  squared_error,         // of the outputs against one-hot labels, summed over classes
  binary_cross_entropy,  // of the sigmoid of each output against one-hot labels, summed over classes
};

struct ModelInfo {
  Shape sample_shape;  // without the batch: [4], [1, 28, 28]
  std::int64_t classes = 0;
  Loss loss = Loss::softmax_cross_entropy;
  PixelScale pixels = {};  // by which samples that are bytes are normalised
  Origin origin = {};      // where the model was described in YAML; empty for one that was written in C++
};

// A network that tells classes apart: [N, sample shape...] -> [N, classes]. Name it with specs_of() or
// make_store() before calling it. One object serves every graph: for training and inference, whatever the
// batch. A named model of this library keeps nothing of a call: several threads may call it at once, each
// with a graph of its own.
class Model : public Module {
 public:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}

  const ModelInfo& info() const { return info_; }
  const Shape& sample_shape() const { return info_.sample_shape; }
  std::int64_t classes() const { return info_.classes; }

  // Extends the graph of x by the network and returns its outputs, logits where the loss is cross-entropy. Samples of
  // uint8, which are images, are normalised first; others are of the parameters' dtype and taken as they are.
  // The nodes have the origin of info(), or that of x.
  Node operator()(Operand x);

 protected:
  virtual Node forward(Operand x) = 0;

 private:
  ModelInfo info_;
};

// The keys of every section `model`.
struct ModelKeys {
  std::string name = {};
  Loss loss = Loss::softmax_cross_entropy;
};
ModelKeys read_model_keys(const Section& yaml);

// All keys of the section `model`, and those of a layer in `model.layers[]`.
std::vector<KeyText> model_key_texts();

// The model that a section `model` describes; model_key_texts() lists its keys. The model has been tried on one
// sample: UserError, with the line and column, for a key that is wrong and for layers that do not fit each
// other, the samples or the classes. `pixels`: how samples of bytes are normalised.
std::unique_ptr<Model> make_model(const Section& yaml, const Shape& sample_shape, std::int64_t classes,
                                  PixelScale pixels);
// The same from a whole configuration: images are normalised as its section `data` says.
std::unique_ptr<Model> make_model(const Config& config, const Shape& sample_shape, std::int64_t classes);

// The model's loss, and as metrics the share of samples that were right: "accuracy", with their label at the
// top, and, where there are more than five classes, "accuracy_top5", among the five largest.
//   outputs [N, classes] of the model; labels int64 [N].
LossOutputs build_loss(const Model& model, Operand outputs, Operand labels);

// For a Trainer: build_loss() of the model on the fields "samples" and "labels" of a Dataset. The model
// outlives it.
ModelBuilder builder_of(Model& model);

}  // namespace plexaura

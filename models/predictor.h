#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/compile/passes.h"
#include "core/vm/vm.h"
#include "models/config/config.h"
#include "models/zoo/model.h"

namespace plexaura {

// What a trained model says of samples: no gradients, no dropout, running statistics in batch norm. Random ops draw
// the same in each call. One thread at a time.
class Predictor {
 public:
  // Extends the graph of samples [N, ...] by the model: `[&](Node x) { return model(x); }`.
  using Forward = std::function<Node(const Node& samples)>;

  // Weights are those of the store, as they are at each call. Model, store and backend outlive it.
  Predictor(Forward model, ParameterStore& store, Backend& backend);
  // The model that the section `model` of a configuration describes, with the weights of a safetensors file. Images
  // of bytes are normalised as its section `data` says.
  // Throws as make_model() and load_weights() do. The backend outlives it.
  Predictor(const Config& config, const std::filesystem::path& weights, const Shape& sample_shape,
            std::int64_t classes, Backend& backend);

  // samples [N, ...] -> the model's outputs: logits [N, classes] for a Model. Floating samples are converted
  // to the dtype of the store, and a Model takes them as they are: images have to be normalised before. Compiled
  // for each shape when it first comes.
  Tensor operator()(const Tensor& samples);

 private:
  PassGraph build(const TensorType& type) const;
  VM& machine_for(const TensorType& type);

  std::unique_ptr<Model> own_model_;
  std::unique_ptr<ParameterStore> own_store_;
  Forward model_;
  ParameterStore& store_;
  Backend& backend_;
  std::uint64_t placed_times_ = 0;                       // of the store, when the machines were made
  std::map<std::string, std::unique_ptr<VM>> machines_;  // by the type of the samples
};

}  // namespace plexaura

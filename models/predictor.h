#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "core/base/busy.h"
#include "core/compile/passes.h"
#include "core/device/backend_use.h"
#include "core/vm/vm.h"
#include "models/config/config.h"
#include "models/zoo/model.h"

namespace plexaura {

struct PredictorOptions {
  // For so many shapes and types of samples the compiled programs are kept, with their memory: those used last. At least 1.
  std::int64_t kept_programs = 16;
};

// What a trained model says of samples: no gradients, no dropout, running statistics in batch norm. Random ops draw
// the same in each call. One thread at a time: UserError for a call while another thread is in one. Each thread takes a
// clone() of its own.
//
// It shares the store, which may be moved or destroyed, and the backend where a std::shared_ptr owns it; UserError where
// another backend is gone.
class Predictor {
 public:
  // Extends the graph of samples [N, ...] by the model: `[&](Node x) { return model(x); }`.
  using Forward = std::function<Node(const Node& samples)>;

  // Weights are those of the store, as they are at each call. The model outlives it.
  Predictor(Forward model, ParameterStore& store, Backend& backend, const PredictorOptions& options = {});
  // The model that the section `model` of a configuration describes, with the weights of a safetensors file. Images
  // of bytes are normalised as its section `data` says.
  // Throws as make_model() and load_weights() do.
  Predictor(const Config& config, const std::filesystem::path& weights, const Shape& sample_shape,
            std::int64_t classes, Backend& backend, const PredictorOptions& options = {});

  // A Predictor of the same model, weights and backend, with programs of its own: for another thread. Clones may be made
  // and called at the same time, but not while the store is written or placed by somebody else.
  Predictor clone() const;

  // samples [N, ...] -> the model's outputs: logits [N, classes] for a Model. Floating samples are converted
  // to the dtype of the store, and a Model takes them as they are: images have to be normalised before. Compiled
  // for each shape when it comes and no program is kept for it.
  Tensor operator()(const Tensor& samples);

 private:
  struct Machine {
    Machine(TensorType of_samples, std::shared_ptr<const Program> program, Backend& backend,
            ParameterStore& store)
        : type(std::move(of_samples)), vm(std::move(program), backend, {.store = &store}) {}

    TensorType type;
    VM vm;
  };

  Predictor(Forward model, ParameterStore store, const BackendUse& backend, const PredictorOptions& options);
  Predictor(std::shared_ptr<Model> model, const std::filesystem::path& weights, Backend& backend,
            const PredictorOptions& options);
  PassGraph build(const TensorType& type) const;
  VM& machine_for(const TensorType& type);
  void add_machine(const TensorType& type);

  Forward model_;
  ParameterStore store_;
  BackendUse backend_;
  PredictorOptions options_;
  std::uint64_t placed_times_ = 0;  // of the store, when the machines were made
  std::list<Machine> machines_;     // that used last comes first
  BusyFlag busy_;
};

}  // namespace plexaura

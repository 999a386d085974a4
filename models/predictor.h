#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/busy.h"
#include "core/compile/passes.h"
#include "core/device/backend_use.h"
#include "core/vm/vm.h"
#include "models/config/config.h"
#include "models/zoo/model.h"

namespace plexaura {

struct PredictorOptions {
  // The number of compiled programs that are kept with their memory: the last ones used, one for each shape
  // and type of samples. At least 1.
  std::int64_t kept_programs = 16;
  bool strict = false;  // see CompileOptions::strict
};

// Computes a trained model's outputs for samples: without gradients and dropout, and with the running
// statistics of batch norm. Random ops draw the same numbers in each call. One thread at a time may call it:
// a call while another thread is in one throws UserError. Other threads use a clone().
//
// It shares the store, which may be moved or destroyed, and the backend if a std::shared_ptr owns that. If a
// backend that is not shared was destroyed, a call throws UserError.
class Predictor {
 public:
  // A function that extends the graph of samples [N, ...] by the model: `[&](Node x) { return model(x); }`.
  using Forward = std::function<Node(const Node& samples)>;

  // Each call uses the present weights of the store. The model must outlive this object.
  Predictor(Forward model, ParameterStore& store, Backend& backend, const PredictorOptions& options = {});
  // Makes the model that the section `model` of a configuration describes, with the weights of a safetensors
  // file. Images of bytes are normalised as its section `data` describes. Throws as make_model() and
  // load_all_weights() do.
  Predictor(const Config& config, const std::filesystem::path& weights, const Shape& sample_shape,
            std::int64_t classes, Backend& backend, const PredictorOptions& options = {});

  // Returns a Predictor for another thread, with the same model, weights and backend. It shares the programs and the
  // weights in the layouts of the kernels, and has its own memory for intermediate values. Clones may be made and called
  // at the same time, but not while the store is written or placed.
  Predictor clone() const;

  // Returns the model's outputs for samples [N, ...]; for a Model see its operator(). Floating-point samples are
  // converted to the dtype of the store. A Model does not normalise them, so images must be normalised before. Compiles a
  // program if none is kept for this shape and type.
  Tensor operator()(const Tensor& samples);

  // Returns the ops that the host has computed so far: see Program::ops_on_host().
  const std::set<std::string>& ops_on_host() const { return ops_on_host_; }

 private:
  // The objects that the VMs of all clones share for one type of samples.
  struct SharedProgram {
    SharedProgram(TensorType of_samples, std::shared_ptr<const Program> compiled)
        : type(std::move(of_samples)), prologue(std::make_shared<PrologueMemory>(std::move(compiled))) {}

    const Program& program() const { return *prologue->program(); }

    TensorType type;
    std::shared_ptr<PrologueMemory> prologue;
    std::uint64_t placed_times = 0;  // ParameterStore::placed_times() for the addresses that the program uses
  };
  // The programs that this object or a clone uses. Backend::turn() guards them.
  using SharedPrograms = std::vector<std::weak_ptr<SharedProgram>>;

  struct Machine {
    Machine(const std::shared_ptr<const SharedProgram>& of_program, Backend& backend, ParameterStore& store)
        : vm(of_program->prologue->program(), backend, {.store = &store, .prologue = of_program->prologue}),
          shared(of_program) {}

    VM vm;
    std::shared_ptr<const SharedProgram> shared;
  };

  Predictor(Forward model, ParameterStore store, const BackendUse& backend, const PredictorOptions& options);
  Predictor(std::shared_ptr<Model> model, const std::filesystem::path& weights, Backend& backend,
            const PredictorOptions& options);
  PassGraph build(const TensorType& type) const;
  // Returns the program that this object or a clone uses, or null.
  std::shared_ptr<SharedProgram> find_program(const TensorType& type) const;
  std::shared_ptr<SharedProgram> compile_program(const TensorType& type) const;
  VM& machine_for(const TensorType& type);
  void add_machine(const TensorType& type);

  Forward model_;
  ParameterStore store_;
  BackendUse backend_;
  PredictorOptions options_;
  std::shared_ptr<SharedPrograms> programs_ = std::make_shared<SharedPrograms>();
  std::uint64_t placed_times_ = 0;  // ParameterStore::placed_times() when the machines were made
  std::list<Machine> machines_;     // the machine that was used last comes first
  std::set<std::string> ops_on_host_;
  BusyFlag busy_;
};

}  // namespace plexaura

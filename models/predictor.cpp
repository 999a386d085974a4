#include "models/predictor.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/compile/mixed_precision.h"
#include "core/inference/fold_batch_norms.h"
#include "models/zoo/pixel_scale.h"
#include "training/checkpoints/weights.h"

namespace plexaura {

namespace {

constexpr const char* samples_name = "samples";

ParameterStore loaded_store(Model& model, const std::filesystem::path& weights) {
  ParameterStore store = make_store(model, DType::float32);
  load_all_weights(weights, store);
  return store;
}

Predictor::Forward call_of(std::shared_ptr<Model> model) {
  return [model = std::move(model)](const Node& samples) { return (*model)(samples); };
}

}  // namespace

Predictor::Predictor(Forward model, ParameterStore& store, Backend& backend, const PredictorOptions& options)
    : Predictor(std::move(model), store.share(), BackendUse(backend), options) {}

Predictor::Predictor(Forward model, ParameterStore store, const BackendUse& backend,
                     const PredictorOptions& options)
    : model_(std::move(model)), store_(std::move(store)), backend_(backend), options_(options) {
  if (!model_) throw UserError("the Predictor has no model; give it the function that builds one");
  if (options_.kept_programs < 1)
    throw UserError(
        fmt::format("PredictorOptions::kept_programs is {}; a Predictor keeps at least one program",
                    options_.kept_programs));
}

Predictor::Predictor(const Config& config, const std::filesystem::path& weights, const Shape& sample_shape,
                     std::int64_t classes, Backend& backend, const PredictorOptions& options)
    : Predictor(make_model(config, sample_shape, classes), weights, backend, options) {}

Predictor::Predictor(std::shared_ptr<Model> model, const std::filesystem::path& weights, Backend& backend,
                     const PredictorOptions& options)
    : Predictor(call_of(model), loaded_store(*model, weights), BackendUse(backend), options) {}

Predictor Predictor::clone() const {
  Predictor clone(model_, store_.share(), backend_, options_);
  clone.programs_ = programs_;
  return clone;
}

Tensor Predictor::operator()(const Tensor& samples) {
  const InUse use(busy_, "a Predictor",
                  "a Predictor answers one thread at a time; clone() one for each thread");
  Backend& backend = backend_.get();
  std::unique_lock turn(backend.turn(), std::defer_lock);
  if (!backend.info().host_memory) turn.lock();
  const DType dtype = is_floating(samples.dtype()) ? store_.dtype() : samples.dtype();
  VM& machine = machine_for({dtype, samples.shape()});
  if (samples.dtype() == dtype)
    machine.run({{samples_name, samples}}, StepBlock{});
  else
    machine.run({{samples_name, samples.cast(dtype)}}, StepBlock{});
  return machine.output();
}

PassGraph Predictor::build(const TensorType& type) const {
  auto graph = std::make_unique<Graph>(Mode::inference);
  const std::vector<Value> roots{model_(graph->input(samples_name, type)).value()};
  const ArenaTypes& types = store_.types();
  if (types.is_mixed()) return in_mixed_precision(*graph, roots, types.precision());
  return fold_batch_norms(*graph, roots);
}

VM& Predictor::machine_for(const TensorType& type) {
  // As long as this object has no machines, the first program of a clone may place the store.
  if (!machines_.empty() && placed_times_ != store_.placed_times()) machines_.clear();
  const auto found =
      std::ranges::find_if(machines_, [&](const Machine& machine) { return machine.shared->type == type; });
  if (found == machines_.end())
    add_machine(type);
  else
    machines_.splice(machines_.begin(), machines_, found);
  return machines_.front().vm;
}

std::shared_ptr<Predictor::SharedProgram> Predictor::find_program(const TensorType& type) const {
  for (const auto& program : *programs_)
    if (auto shared = program.lock();
        shared && shared->type == type && shared->placed_times == store_.placed_times())
      return shared;
  return nullptr;
}

std::shared_ptr<Predictor::SharedProgram> Predictor::compile_program(const TensorType& type) const {
  const PassGraph built = build(type);
  const std::vector<ProgramOutput> outputs{{.node = Node(*built.graph, built.roots[0])}};
  auto program = compile(*built.graph, outputs, backend_.get(),
                         {.placement = &store_.placement(), .strict = options_.strict});
  return std::make_shared<SharedProgram>(type, std::move(program));
}

void Predictor::add_machine(const TensorType& type) {
  Backend& backend = backend_.get();
  const std::lock_guard turn(backend.turn());
  std::shared_ptr<SharedProgram> shared = find_program(type);
  const bool is_new = shared == nullptr;
  if (is_new) shared = compile_program(type);
  ops_on_host_.merge(shared->program().ops_on_host());
  while (std::ssize(machines_) >= options_.kept_programs) machines_.pop_back();
  // The first machine places the store, unless it is placed already.
  machines_.emplace_front(shared, backend, store_);
  shared->placed_times = placed_times_ = store_.placed_times();
  if (!is_new) return;
  std::erase_if(*programs_, [](const auto& program) { return program.expired(); });
  programs_->push_back(shared);
}

}  // namespace plexaura

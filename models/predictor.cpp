#include "models/predictor.h"

#include "core/compile/compile.h"
#include "core/compile/mixed_precision.h"
#include "core/error.h"
#include "models/zoo/pixel_scale.h"
#include "training/weights.h"

namespace plexaura {

namespace {

constexpr const char* samples_name = "samples";

std::unique_ptr<ParameterStore> loaded_store(Model& model, const std::filesystem::path& weights) {
  auto store = std::make_unique<ParameterStore>(make_store(model, DType::float32));
  load_weights(weights, *store);
  return store;
}

}  // namespace

Predictor::Predictor(Forward model, ParameterStore& store, Backend& backend)
    : model_(std::move(model)), store_(store), backend_(backend) {
  if (!model_) throw UserError("the Predictor has no model; give it the function that builds one");
}

Predictor::Predictor(const Config& config, const std::filesystem::path& weights, const Shape& sample_shape,
                     std::int64_t classes, Backend& backend)
    : own_model_(make_model(config, sample_shape, classes)),
      own_store_(loaded_store(*own_model_, weights)),
      model_([model = own_model_.get()](const Node& samples) { return (*model)(samples); }),
      store_(*own_store_),
      backend_(backend) {}

Tensor Predictor::operator()(const Tensor& samples) {
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
  return {std::move(graph), roots};
}

VM& Predictor::machine_for(const TensorType& type) {
  if (placed_times_ != store_.placed_times()) machines_.clear();
  std::unique_ptr<VM>& machine = machines_[to_string(type)];
  if (!machine) {
    const PassGraph built = build(type);
    const std::vector<ProgramOutput> outputs{{.node = Node(*built.graph, built.roots[0])}};
    const auto program = compile(*built.graph, outputs, backend_, {.placement = &store_.placement()});
    machine = std::make_unique<VM>(program, backend_, VmOptions{.store = &store_});
    placed_times_ = store_.placed_times();
  }
  return *machine;
}

}  // namespace plexaura

// Computes a model's logits, loss and gradients for one batch, for comparison with another framework.

#include <cstdio>
#include <fmt/format.h>
#include <string>

#include "tools/tool.h"

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "models/zoo/model.h"
#include "training/checkpoints/checkpoint.h"
#include "training/files/safetensors.h"

namespace plexaura {

namespace {

struct Options {
  std::string config;
  std::string weights;
  std::string batch;
  std::string result;
  std::string backend = "cpu";
  std::string precision = "float32";
  std::int64_t classes = 1000;
};

Tensor take(const SafeTensors& file, const std::string& path, const std::string& name, DType dtype) {
  for (const auto& [found, tensor] : file.tensors)
    if (found == name) return tensor.cast(dtype);
  throw UserError(fmt::format("{} has no tensor '{}'; it must have 'samples' and 'labels'", path, name));
}

SafeTensors compute(const Options& options) {
  const DType dtype = options.precision == "float64" ? DType::float64 : DType::float32;
  const SafeTensors batch = read_safetensors(options.batch);
  const Tensor samples = take(batch, options.batch, "samples", dtype);
  const Tensor labels = take(batch, options.batch, "labels", DType::int64);
  const Shape sample_shape(std::vector<std::int64_t>(samples.shape().begin() + 1, samples.shape().end()));
  const Config config = Config::load(options.config);
  const auto model = make_model(config, sample_shape, options.classes);
  config.section("model").check_all_used();
  ParameterStore store = make_store(*model, dtype);
  load_all_weights(options.weights, store);

  Graph graph(Mode::train);
  const Node logits = (*model)(graph.input("samples", samples.type()));
  const LossOutputs loss = build_loss(*model, logits, graph.input("labels", labels.type()));
  std::vector<ProgramOutput> outputs = training_outputs(graph, loss, store, samples.shape()[0]);
  outputs.insert(outputs.begin(), {{.node = logits}, {.node = loss.loss}});
  const auto backend = open_backend(options.backend);
  VM vm(compile(graph, outputs, *backend, {.apply_updates = false}), *backend, {.store = &store});
  StepBlock block;
  block.samples = static_cast<double>(samples.shape()[0]);
  vm.run({{"samples", samples}, {"labels", labels}}, block);

  SafeTensors result;
  result.tensors.emplace_back("logits", vm.output(0));
  result.tensors.emplace_back("loss", vm.output(1));
  for (const ParameterSpec& spec : store.specs())
    if (spec.role == ParameterRole::trainable)
      result.tensors.emplace_back("gradient." + spec.name, store.read_gradient(spec.name));
  return result;
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Computes a model's logits, loss and gradients for one batch", "dump_gradients");
  Options options;
  app.option_defaults()->always_capture_default();
  app.add_option("FILE.yaml", options.config, "a configuration; only the section model is used")->required();
  app.add_option("WEIGHTS", options.weights, "safetensors file with the parameters and buffers")->required();
  app.add_option("BATCH", options.batch, "safetensors file with 'samples' and 'labels'")->required();
  app.add_option("RESULT", options.result, "safetensors file to write")->required();
  app.add_option("--backend", options.backend, "cpu, portable or a plugin; options follow its name");
  app.add_option("--precision", options.precision, "float32 or float64")
      ->check(CLI::IsMember({"float32", "float64"}));
  app.add_option("--classes", options.classes, "number of classes")->check(whole_number(1));
  return run_tool(app, argc, argv, [&] { write_safetensors(options.result, compute(options)); });
}

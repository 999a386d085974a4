#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

#include "core/base/error.h"
#include "models/zoo/layer_net.h"
#include "models/zoo/mlp.h"
#include "models/zoo/model.h"
#include "models/zoo/pixel_scale.h"
#include "models/zoo/resnet.h"
#include "models/zoo/sample.h"
#include "models/zoo/yaml_origin.h"

namespace plexaura {

namespace {

Loss read_loss(const Section& yaml) {
  const std::string name = yaml.choice_or("loss", "softmax_cross_entropy",
                                          {"softmax_cross_entropy", "squared_error", "binary_cross_entropy"});
  if (name == "binary_cross_entropy") return Loss::binary_cross_entropy;
  return name == "squared_error" ? Loss::squared_error : Loss::softmax_cross_entropy;
}

double memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// The least that training takes: a store holds every value twice while it is placed. Systems promise more
// memory than there is, and kill who uses it.
void check_fits_in_memory(const Section& yaml, const std::vector<ParameterSpec>& specs) {
  const auto bytes = [](const ParameterSpec& spec) { return static_cast<double>(spec.type.bytes()); };
  double needed = 0;
  for (const ParameterSpec& spec : specs) needed += 2 * bytes(spec);
  if (needed <= memory_bytes()) return;
  const ParameterSpec& largest = *std::ranges::max_element(specs, {}, bytes);
  throw UserError(
      fmt::format("{}: the model needs {:.1f} GB of memory for its parameters and there are {:.1f} GB; the "
                  "largest is '{}', "
                  "{}; make the model smaller",
                  to_string(yaml.position("name")), needed * 1e-9, memory_bytes() * 1e-9, largest.name,
                  to_string(largest.type)));
}

// Builds the model for one sample, so that what does not fit is found before any data is read.
void try_once(Model& model) {
  Graph graph(Mode::inference);
  const Node outputs = model(one_sample(graph, model.sample_shape()));
  if (outputs.shape() != Shape{1, model.classes()})
    throw UserError(fmt::format(
        "{}: the model's output for one sample is {} and the data has {} classes; its last layer must be a "
        "value [1, classes]",
        to_string(graph.record(outputs.id()).origin), to_string(outputs.shape()), model.classes()));
}

std::unique_ptr<Model> make_named(const std::string& name, const Section& yaml, ModelInfo info) {
  if (name == "mlp") return make_mlp(yaml, std::move(info));
  return name == "resnet" ? make_resnet(yaml, std::move(info)) : make_layer_net(yaml, std::move(info));
}

}  // namespace

std::unique_ptr<Model> make_model(const Section& yaml, const Shape& sample_shape, std::int64_t classes,
                                  PixelScale pixels) {
  const std::string name = yaml.choice("name", {"convnet", "mlp", "resnet"});
  ModelInfo info{sample_shape, classes, read_loss(yaml), std::move(pixels),
                 yaml_origin(yaml.position("name"))};
  std::unique_ptr<Model> model = make_named(name, yaml, std::move(info));
  check_fits_in_memory(yaml, specs_of(*model, DType::float32));
  try_once(*model);
  return model;
}

std::unique_ptr<Model> make_model(const Config& config, const Shape& sample_shape, std::int64_t classes) {
  return make_model(config.section("model"), sample_shape, classes, read_pixel_scale(config.section("data")));
}

}  // namespace plexaura

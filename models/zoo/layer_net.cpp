#include "models/zoo/layer_net.h"

#include "models/zoo/layer_list.h"
#include "models/zoo/sample.h"
#include "models/zoo/yaml_origin.h"

namespace plexaura {

namespace {

Initialiser read_initialiser(const Section& yaml) {
  const std::string name =
      yaml.choice_or("initialiser", "lecun_uniform",
                     {"lecun_uniform", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal"});
  if (name == "glorot_uniform") return Initialiser::glorot_uniform();
  if (name == "glorot_normal") return Initialiser::glorot_normal();
  if (name == "he_uniform") return Initialiser::he_uniform();
  return name == "he_normal" ? Initialiser::he_normal() : Initialiser::lecun_uniform();
}

}  // namespace

std::unique_ptr<Model> make_layer_net(const Section& yaml, ModelInfo info) {
  const std::vector<Section> written = yaml.sections("layers");
  if (written.empty()) throw yaml.error("layers", "is empty; give at least the layer that makes the outputs");
  Graph graph(Mode::inference);
  const Graph::WithOrigin here(graph, yaml_origin(yaml.position("layers")));
  Node x = one_sample(graph, info.sample_shape);
  LayerList list(info.classes, read_initialiser(yaml));
  auto layers = list.make(written, x, "");
  return std::make_unique<LayerNet>(std::move(info), std::move(layers));
}

}  // namespace plexaura

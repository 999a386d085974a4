#include "models/zoo/layer_net.h"

#include <map>

#include "models/layer_lists/layer_list.h"
#include "models/layer_lists/yaml_origin.h"
#include "models/zoo/sample.h"

namespace plexaura {

namespace {

const std::map<std::string, Initialiser>& initialisers() {
  static const std::map<std::string, Initialiser> known{{"lecun_uniform", Initialiser::lecun_uniform()},
                                                        {"glorot_uniform", Initialiser::glorot_uniform()},
                                                        {"glorot_normal", Initialiser::glorot_normal()},
                                                        {"he_uniform", Initialiser::he_uniform()},
                                                        {"he_normal", Initialiser::he_normal()}};
  return known;
}

}  // namespace

std::vector<Key> layer_net_keys(LayerNetKeys& keys) {
  std::vector<std::string> words;
  for (const auto& [word, initialiser] : initialisers()) words.push_back(word);
  return {
      {.name = "layers",
       .into = &keys.layers,
       .required = true,
       .meaning = "one map per layer; input sizes are inferred"},
      {.name = "initialiser",
       .into = &keys.initialiser,
       .words = std::move(words),
       .meaning = "how the weights of `conv`, `conv_transpose` and `linear` start"},
  };
}

std::unique_ptr<Model> make_layer_net(ModelInfo info, const LayerNetKeys& keys, const Section& yaml) {
  if (keys.layers.empty())
    throw yaml.error("layers", "is empty; give at least the layer that makes the outputs");
  Graph graph(Mode::inference);
  const Graph::WithOrigin here(graph, yaml_origin(yaml.position("layers")));
  Node x = one_sample(graph, info);
  LayerList list(info.classes, initialisers().at(keys.initialiser), info.task == Task::language_model);
  auto layers = list.make(keys.layers, x, "");
  return std::make_unique<LayerNet>(std::move(info), std::move(layers));
}

}  // namespace plexaura

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer_lists/layer_keys.h"
#include "models/layers/sequential.h"

namespace plexaura {

// What a layer of a YAML list is made from.
struct LayerRequest {
  const Section& yaml;
  const LayerKeys& keys;
  Shape x;                          // shape of one sample before the layer
  std::int64_t classes;             // of the net, or the number of its targets or tokens
  Initialiser weight;               // how the weights of linear layers and convolutions start
  std::optional<Initialiser> bias;  // how their biases start; empty: as in PyTorch
  // Makes the layers of an inner list, whose path ends with `name`.
  std::function<std::unique_ptr<layers::Sequential>(const std::vector<Section>& list, std::string_view name)>
      inner;
};

// A type of layer in a YAML list. Its keys are those of layer_keys() that need it.
struct LayerKind {
  std::string type;
  std::string prefix;   // of default names, such as "conv" in "conv2"
  std::string meaning;  // in Markdown
  // Throws UserError for keys that do not fit the sample.
  std::unique_ptr<layers::Layer> (*make)(const LayerRequest& request);
  // True if it maps a sequence [steps, features] to one, no step of which depends on later steps. Of a transformer_encoder
  // this holds with the key `causal` alone.
  bool keeps_order = false;
};

const std::vector<LayerKind>& layer_kinds();

// Returns the kind of a type that layer_kinds() contains.
const LayerKind& kind_of_layer(std::string_view type);

}  // namespace plexaura

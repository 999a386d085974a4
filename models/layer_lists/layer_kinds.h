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

// The arguments with which a layer of a YAML list is made.
struct LayerRequest {
  const Section& yaml;
  const LayerKeys& keys;
  Shape x;                          // shape of the layer's input, for a batch of one sample
  std::int64_t classes;             // number of classes, targets or tokens of the net
  Initialiser weight;               // initial values of the weights of linear layers and convolutions
  std::optional<Initialiser> bias;  // initial values of their biases; empty: as in PyTorch
  // Makes the layers of an inner list, whose path ends with `name`.
  std::function<std::unique_ptr<layers::Sequential>(const std::vector<Section>& list, std::string_view name)>
      inner;
};

// A type of layer in a YAML list. Its keys are `type`, `name` and those of layer_keys() whose need names the type.
struct LayerKind {
  std::string type;
  std::string prefix;   // beginning of default names, such as "conv" of "conv2"
  std::string meaning;  // text in Markdown
  // Makes the layer. Throws UserError for keys that do not fit the sample.
  std::unique_ptr<layers::Layer> (*make)(const LayerRequest& request);
  // True if the layer maps a sequence [steps, features] to a sequence, and no step of the result depends on
  // later steps. For a transformer_encoder this is so only with the key `causal`.
  bool keeps_order = false;
};

const std::vector<LayerKind>& layer_kinds();

// Returns the kind of a type that layer_kinds() contains.
const LayerKind& kind_of_layer(std::string_view type);

}  // namespace plexaura

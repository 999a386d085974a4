#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "models/config/keys.h"
#include "models/layers/batch_norm.h"
#include "models/layers/transformer.h"

namespace plexaura {

// The keys of one layer in a YAML list.
struct LayerKeys {
  std::string type = {};
  std::string name = {};
  std::int64_t units = 0;
  std::int64_t kernel = 0;
  std::int64_t channels = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  bool count_include_pad = true;
  layers::BatchNormOptions norm = {};
  double p = 0.5;
  std::int64_t depth = 1;
  double recurrent_dropout = 0;
  bool bidirectional = false;
  std::int64_t heads = 1;
  bool causal = false;
  layers::TransformerOptions transformer = {};
  double deviation = 1;
  std::int64_t scale = 1;
  bool smooth = false;
  std::vector<std::int64_t> shape = {};
  std::vector<Section> layers = {};
  std::vector<Section> shortcut = {};
  std::optional<std::string> activation = {};
};

// The place of a layer in its net. Some defaults and limits of the layer's keys depend on it.
struct LayerPlace {
  Shape input = {};  // shape of the layer's input, for a batch of one sample
  std::int64_t classes = 1;
  // For each prefix of a name, such as "conv": the number of earlier layers with this prefix.
  std::map<std::string, int> numbers = {};
};

// Returns the number of channels, the second extent of x, or 1.
std::int64_t channels_of(const Shape& x);
// Returns the number of features, the last extent of x, or 1.
std::int64_t features_of(const Shape& x);

std::vector<Key> layer_keys(LayerKeys& keys, const LayerPlace& place = {});

// Returns a Markdown table of the types of layers, their keys and meanings.
std::string layer_types_markdown();

}  // namespace plexaura

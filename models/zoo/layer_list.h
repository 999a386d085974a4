#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/layers/batch_norm.h"
#include "models/layers/sequential.h"

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
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  bool count_include_pad = true;
  layers::BatchNormOptions norm = {};
  double p = 0.5;
  std::vector<Section> layers = {};
  std::vector<Section> shortcut = {};
};

// The place of a layer in its net, which determines some defaults and limits of its keys.
struct LayerPlace {
  Shape input = {};  // shape of one sample
  std::int64_t classes = 1;
  // For each prefix of a name, such as "conv": how many layers before have it.
  std::map<std::string, int> numbers = {};
};

std::vector<Key> layer_keys(LayerKeys& keys, const LayerPlace& place = {});

// Makes layers from a YAML list. Each layer is called at once on one sample in a temporary graph. The shape
// rules of the ops give the next layer its input size, and find layers that do not fit, which errors report
// with their line.
class LayerList {
 public:
  LayerList(std::int64_t classes, Initialiser weight) : classes_(classes), weight_(weight) {}

  // `x`: one sample before the call, the output of the layers after it. `path`: the path of the list in the
  // model.
  std::unique_ptr<layers::Sequential> make(const std::vector<Section>& list, Node& x,
                                           const std::string& path);

 private:
  std::unique_ptr<layers::Layer> make_layer(const Section& yaml, const LayerKeys& keys, const Node& x,
                                            const std::string& path);
  std::unique_ptr<layers::Layer> make_linear(const LayerKeys& keys, const Shape& x) const;
  std::unique_ptr<layers::Layer> make_conv(const Section& yaml, const LayerKeys& keys, const Shape& x) const;
  std::unique_ptr<layers::Layer> make_residual(const Section& yaml, const LayerKeys& keys, const Node& x,
                                               const std::string& path);
  std::optional<Initialiser> bias_start() const;

  std::int64_t classes_;
  Initialiser weight_;
};

}  // namespace plexaura

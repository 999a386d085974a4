#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/layer_lists/layer_keys.h"
#include "models/layers/sequential.h"

namespace plexaura {

// Makes layers from a YAML list. Each layer is called at once on one sample in a temporary graph. The shape
// rules of the ops give the next layer its input size, and find layers that do not fit, which errors report
// with their line.
class LayerList {
 public:
  // `predicts_steps` is true if the net predicts the next token at each step of a text. Then no step may
  // depend on a later one, and layers that break this are refused.
  LayerList(std::int64_t classes, Initialiser weight, bool predicts_steps = false)
      : classes_(classes), weight_(weight), predicts_steps_(predicts_steps) {}

  // Makes the layers. `x` is a batch of one sample before the call, and the output of the layers afterwards.
  // `path` is the path of the list in the model.
  std::unique_ptr<layers::Sequential> make(const std::vector<Section>& list, Node& x,
                                           const std::string& path);

 private:
  std::unique_ptr<layers::Layer> make_layer(const Section& yaml, const LayerKeys& keys, const Node& x,
                                            const std::string& path);
  std::optional<Initialiser> bias_start() const;
  void check_steps(const Section& yaml, const LayerKeys& keys) const;

  std::int64_t classes_;
  Initialiser weight_;
  bool predicts_steps_;
};

}  // namespace plexaura

#pragma once

#include "models/config/keys.h"
#include "models/layers/sequential.h"
#include "models/zoo/model.h"

namespace plexaura {

// A network that is a list of layers. Parameters: the layers' names and theirs, "conv1.weight".
class LayerNet final : public Model {
 public:
  LayerNet(ModelInfo info, std::unique_ptr<layers::Sequential> layers)
      : Model(std::move(info)), layers_(std::move(layers)) {}

  void members(MemberVisitor& visit) override { layers_->members(visit); }

 protected:
  Node forward(Operand x) override { return (*layers_)(x); }

 private:
  std::unique_ptr<layers::Sequential> layers_;
};

// Holds what the section `model` says of a list of layers.
struct LayerNetKeys {
  std::vector<Section> layers = {};
  std::string initialiser = "lecun_uniform";
};

std::vector<Key> layer_net_keys(LayerNetKeys& keys);

// From the key `layers`, a list of sections {type: ..., options}; sizes of inputs follow from the samples.
// Every node has the place of its layer in the YAML file as its origin. UserError where a layer does not fit
// what comes before it.
std::unique_ptr<Model> make_layer_net(const Section& yaml, ModelInfo info);

}  // namespace plexaura

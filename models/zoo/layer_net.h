#pragma once

#include "models/config/keys.h"
#include "models/layers/sequential.h"
#include "models/zoo/model.h"

namespace plexaura {

// A network that is a list of layers. A parameter's name is the name of its layer, followed by its name in
// the layer: "conv1.weight".
class LayerNet final : public Model {
 public:
  LayerNet(ModelInfo info, std::unique_ptr<layers::Sequential> layers)
      : Model(std::move(info)), layers_(std::move(layers)) {}

  void members(MemberVisitor& visit) override { layers_->members(visit); }
  std::unique_ptr<layers::IncrementalLayer> incremental(std::int64_t samples) const override {
    // Axis 1 of other samples need not be that of positions.
    if (info().task != Task::language_model) return nullptr;
    return layers_->incremental(samples, sample_shape()[0]);
  }

 protected:
  Node forward(Operand x) const override { return (*layers_)(x); }

 private:
  std::unique_ptr<layers::Sequential> layers_;
};

// The values of the keys of the section `model` for a list of layers.
struct LayerNetKeys {
  std::vector<Section> layers = {};
  std::string initialiser = "lecun_uniform";
};

std::vector<Key> layer_net_keys(LayerNetKeys& keys);

// Makes a model from the key `layers`, a list of sections {type: ..., options}. Input sizes are inferred from the
// samples. The origin of every node is the place of its layer in the YAML file. Throws UserError if the list is empty,
// and if a layer does not fit the output of the layer before.
std::unique_ptr<Model> make_layer_net(ModelInfo info, const LayerNetKeys& keys, const Section& yaml);

}  // namespace plexaura

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/layers/sequential.h"

namespace plexaura {

// Makes layers from a YAML list. Each is called at once on one sample in a graph that is thrown away: that
// tells the next one how large its input is, by the shape rules of the ops themselves, and finds what does
// not fit, with its line.
class LayerList {
 public:
  LayerList(std::int64_t classes, Initialiser weight) : classes_(classes), weight_(weight) {}

  // `x` is one sample, and afterwards what comes out. `path` is that of the list in the model.
  std::unique_ptr<layers::Sequential> make(const std::vector<Section>& list, Node& x,
                                           const std::string& path);

  // The words that `type` takes.
  static const std::vector<std::string>& types();

 private:
  std::unique_ptr<layers::Layer> make_layer(const std::string& type, const Section& yaml, const Node& x,
                                            const std::string& path);
  std::unique_ptr<layers::Layer> make_linear(const Section& yaml, const Shape& x) const;
  std::unique_ptr<layers::Layer> make_conv(const Section& yaml, const Shape& x) const;
  std::unique_ptr<layers::Layer> make_residual(const Section& yaml, const Node& x, const std::string& path);
  std::optional<Initialiser> bias_start() const;

  std::int64_t classes_;
  Initialiser weight_;
};

}  // namespace plexaura

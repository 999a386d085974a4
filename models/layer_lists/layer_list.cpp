#include "models/layer_lists/layer_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/config/yaml_tree.h"
#include "models/layer_lists/layer_kinds.h"
#include "models/layer_lists/yaml_origin.h"

namespace plexaura {

std::unique_ptr<layers::Sequential> LayerList::make(const std::vector<Section>& list, Node& x,
                                                    const std::string& path) {
  auto sequential = std::make_unique<layers::Sequential>();
  LayerPlace place{.classes = classes_};
  for (const Section& yaml : list) {
    LayerKeys keys;
    place.input = x.shape();
    read_keys(yaml, layer_keys(keys, place));
    ++place.numbers[kind_of_layer(keys.type).prefix];
    const std::string& name = keys.name;
    if (!is_parameter_name(name) || name.find('.') != std::string::npos)
      throw yaml.error("name", fmt::format("is {}; use only letters and digits of ASCII, '_' and '-'",
                                           quoted_for_error(name)));
    if (sequential->contains(name))
      throw yaml.error("name", fmt::format("is '{}', as is that of a layer before", name));
    const std::string full = path.empty() ? name : path + '.' + name;
    const Origin origin = yaml_origin(yaml.position());
    std::unique_ptr<layers::Layer> layer = make_layer(yaml, keys, x, full);
    yaml.check_all_used();  // reports an unknown key before later layers can fail
    specs_of(*layer, DType::float32, full);
    const Graph::WithOrigin here(x.graph(), origin);
    x = (*layer)(x);
    sequential->add(name, std::move(layer), origin);
  }
  return sequential;
}

std::unique_ptr<layers::Layer> LayerList::make_layer(const Section& yaml, const LayerKeys& keys,
                                                     const Node& x, const std::string& path) {
  const auto inner = [&](const std::vector<Section>& list, std::string_view name) {
    Node y = x;
    return make(list, y, fmt::format("{}.{}", path, name));
  };
  if (predicts_steps_) check_steps(yaml, keys);
  return kind_of_layer(keys.type).make({yaml, keys, x.shape(), classes_, weight_, bias_start(), inner});
}

// Throws UserError for a layer that lets a step depend on later ones: the net could copy the token that it is
// to predict.
void LayerList::check_steps(const Section& yaml, const LayerKeys& keys) const {
  constexpr auto rule = "model.task is language_model, in which a step may not see the tokens after it";
  if (!kind_of_layer(keys.type).keeps_order) {
    std::vector<std::string> types;
    for (const LayerKind& kind : layer_kinds())
      if (kind.keeps_order) types.push_back(kind.type);
    throw yaml.error("type",
                     fmt::format("is {}, and {}; choose one of {}", keys.type, rule, fmt::join(types, ", ")));
  }
  if (keys.type == "transformer_encoder" && !keys.causal)
    throw yaml.error("causal", fmt::format("is false, and {}; set it to true", rule));
  if (keys.bidirectional)
    throw yaml.error("bidirectional", fmt::format("is true, and {}; set it to false", rule));
}

// Returns PyTorch's default for biases if weights have PyTorch's default, otherwise zeros.
std::optional<Initialiser> LayerList::bias_start() const {
  if (weight_.fan == Initialiser::Fan::in && weight_.value < 1) return std::nullopt;
  return Initialiser::zeros();
}

}  // namespace plexaura

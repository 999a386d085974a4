#include "models/zoo/model_kind.h"

#include <fmt/format.h>
#include <map>

#include "core/base/error.h"
#include "models/zoo/convnext.h"
#include "models/zoo/layer_net.h"
#include "models/zoo/mlp.h"
#include "models/zoo/mobilenet_v2.h"
#include "models/zoo/resnet.h"
#include "models/zoo/unet.h"
#include "models/zoo/vgg.h"

namespace plexaura {

namespace {

std::map<std::string, ModelKind>& model_kinds() {
  static std::map<std::string, ModelKind> kinds{
      {"convnet", model_kind(layer_net_keys, make_layer_net)},
      {"convnext", model_kind(convnext_keys, make_convnext)},
      {"mlp", model_kind(mlp_keys, make_mlp)},
      {"mobilenet_v2", model_kind(mobilenet_v2_keys, make_mobilenet_v2)},
      {"resnet", model_kind(resnet_keys, make_resnet)},
      {"unet", model_kind(unet_keys, make_unet)},
      {"vgg", model_kind(vgg_keys, make_vgg)},
  };
  return kinds;
}

}  // namespace

void register_model(const std::string& name, ModelKind kind) {
  if (name.empty() || !kind.make || !kind.describe)
    throw UserError(
        fmt::format("register_model('{}'): a model needs a name and both functions of ModelKind; "
                    "model_kind() makes them from a table of keys",
                    name));
  if (!model_kinds().emplace(name, std::move(kind)).second)
    throw UserError(fmt::format("register_model('{}'): there is a model with this name; take another", name));
}

const ModelKind& kind_of_model(const std::string& name) { return model_kinds().at(name); }

std::vector<std::string> names_of_models() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : model_kinds()) names.push_back(name);
  return names;
}

}  // namespace plexaura

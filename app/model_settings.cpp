#include "app/model_settings.h"

#include <utility>

namespace plexaura {

void keep_model_settings(Settings& settings, const Model& model) {
  std::erase_if(settings, [](const auto& setting) { return !setting.first.starts_with("model."); });
  // Weights that do not name their task belong to a classification.
  if (model.info().task == Task::classification) settings.erase("model.task");
  // Weights that do not name these keys were trained with their defaults.
  for (const auto& [key, value] :
       {std::pair{"model.label_smoothing", "0"}, std::pair{"model.class_weights", "[]"}})
    if (const auto found = settings.find(key); found != settings.end() && found->second == value)
      settings.erase(found);
}

}  // namespace plexaura

#include "app/data/class_weights.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

std::vector<double> balanced_weights(const Section& model, const Dataset& train) {
  const auto classes = train.class_names().size();
  std::vector<double> counts(classes);
  for (const std::int64_t label : labels_of(train)) ++counts[static_cast<std::size_t>(label)];
  for (std::size_t i = 0; i < classes; ++i) {
    if (counts[i] == 0)
      throw model.error(
          "class_weights",
          fmt::format("is balanced, and there is no sample of the class '{}' to train on; list the "
                      "weights, or add samples of that class",
                      train.class_names()[i]));
    counts[i] = static_cast<double>(train.size()) / (static_cast<double>(classes) * counts[i]);
  }
  return counts;
}

}  // namespace plexaura

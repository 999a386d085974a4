#include "app/data/class_weights.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "training/data/sampler.h"

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

std::shared_ptr<const std::vector<double>> drawing_weights(const Section& data, const DataOptions& options,
                                                           const Dataset& train) {
  const std::vector<std::string>& classes = train.class_names();
  std::vector<double> weights(classes.size(), 1);
  const bool is_weighted = options.sampling == "weighted";
  if (is_weighted) weights = options.sampling_weights;
  if (weights.size() != classes.size())
    throw data.error("sampling_weights",
                     fmt::format("has {} numbers for {} classes; give one for each: {}", weights.size(),
                                 classes.size(), fmt::join(classes, ", ")));
  if (std::ranges::none_of(weights, [](double weight) { return weight > 0; }))
    throw data.error("sampling_weights", "has only zeros; give at least one class a number above 0");
  try {
    return std::make_shared<const std::vector<double>>(sample_weights(labels_of(train), weights));
  } catch (const UserError& error) {
    throw data.error(is_weighted ? "sampling_weights" : "sampling",
                     fmt::format("cannot be used: {}", error.what()));
  }
}

}  // namespace plexaura

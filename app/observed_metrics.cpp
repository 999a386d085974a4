#include "app/observed_metrics.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/did_you_mean.h"
#include "models/config/rules.h"

namespace plexaura {

void check_observed_metrics(const Config& config, const TrainerOptions& options,
                            std::vector<std::string> metrics) {
  metrics.insert(metrics.begin(), "loss");
  const auto check = [&](const char* section, const std::string& metric) {
    if (std::ranges::find(metrics, metric) != metrics.end()) return;
    throw config.section("training")
        .section(section)
        .error("metric", fmt::format("is '{}', which the validation of this model does not report; give {}{}",
                                     metric, joined_with_or(metrics), did_you_mean(metric, metrics)));
  };
  if (options.goal) check("goal", options.goal->metric);
  if (const Plateau* const plateau = options.learning_rate.plateau()) check("schedule", plateau->metric);
}

}  // namespace plexaura

#include "app/trials/overfit_samples.h"

#include <fmt/format.h>

#include "app/report/report.h"
#include "core/base/print.h"
#include "training/loop/overfit.h"

namespace plexaura {

std::vector<std::string> settings_of_overfit(const Config& config, std::int64_t samples) {
  std::vector<std::string> settings{fmt::format("data.limit={}", samples), "data.validation_limit=0"};
  if (config.section("model").has("label_smoothing")) settings.emplace_back("model.label_smoothing=0");
  return settings;
}

int overfit_samples(Collective& ranks, const TrainerParts& parts, const TrainerOptions& options) {
  const OverfitGoal goal;
  const OverfitResult result = overfit(parts, options, goal);
  if (result.signal != 0) return result.signal;
  together(ranks, "the samples that are to be learned", [&] {
    const std::string fall = fmt::format("{} samples in {} steps: the loss went from {:.4g} to {:.4g}",
                                         parts.train->size(), result.steps, result.first_loss, result.loss);
    if (!result.is_learned)
      throw UserError(fmt::format(
          "the model has not learned {}, and has to reach a tenth; {}look at the labels, try other rates "
          "with --find-lr, and check ops of your own with --check-gradients",
          fall, result.dead_gradients.empty() ? "" : dead_gradients_sentence(result.dead_gradients) + "; "));
    if (ranks.rank() == 0) print_output(fmt::format("the model has learned {}\n", fall));
  });
  return 0;
}

}  // namespace plexaura

#include "app/trials/find_learning_rate.h"

#include <fmt/format.h>
#include <string>

#include "core/base/print.h"
#include "training/loop/learning_rate_sweep.h"

namespace plexaura {

namespace {

std::string sweep_text(const LearningRateSweep& sweep) {
  std::string text = "learning rate  loss          smoothed\n";
  for (const SweptRate& rate : sweep.rates)
    text += fmt::format("{:<13.4g}  {:<12.6g}  {:.6g}\n", rate.learning_rate, rate.loss, rate.smoothed);
  if (sweep.suggestion)
    text += fmt::format("the loss falls fastest at --set training.optimizer.learning_rate={:.3g}\n",
                        *sweep.suggestion);
  return text;
}

void check_settings(const Config& config, Strategy* strategy) {
  const Section optimizer = config.section("training").section("optimizer");
  if (optimizer.has("base_batch_size"))
    throw optimizer.error("base_batch_size",
                          "multiplies the learning rate, and --find-lr finds the one of this size of steps; "
                          "remove it");
  if (strategy != nullptr && strategy->parts().scope == GradientScope::local)
    throw config.section("distributed")
        .error("strategy",
               "lets each rank make steps of its own, and --find-lr needs one loss for each step; choose "
               "allreduce");
}

}  // namespace

int find_learning_rate(Collective& ranks, const Config& config, const TrainerParts& parts,
                       const TrainerOptions& options) {
  together(ranks, "reading the configuration", [&] { check_settings(config, parts.strategy); });
  const LearningRateSweep sweep = sweep_learning_rates(parts, options);
  if (sweep.signal != 0) return sweep.signal;
  together(ranks, "printing", [&] {
    if (ranks.rank() == 0) print_output(sweep_text(sweep));
    if (!sweep.suggestion)
      throw UserError(
          "the loss falls by less than 5 % at these learning rates, so that none can be suggested; look at "
          "the data, and at the model with --check-gradients");
  });
  return 0;
}

}  // namespace plexaura

#include "training/loop/trainer_checks.h"

#include <cstdint>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/step/training_step.h"

namespace plexaura {

void check_parts(const TrainerParts& parts) {
  if (!parts.model) throw UserError("the Trainer has no model; set TrainerParts::model");
  check_trains(parts.store);
  if (!parts.train) throw UserError("the Trainer has no training data; set TrainerParts::train");
  if (parts.validation && parts.validation->fields() != parts.train->fields())
    throw UserError(
        fmt::format("samples of the training data are {} and those of the validation data {}; give "
                    "both the same fields",
                    to_string(parts.train->fields()), to_string(parts.validation->fields())));
}

void check_strategy(const StrategyInUse& strategy, const Collective& ranks) {
  if (strategy.strategy == nullptr && ranks.size() > 1)
    throw UserError(
        fmt::format("the Trainer has {} ranks and no strategy; set TrainerParts::strategy, for one to "
                    "make_strategy({{}}, ranks)",
                    ranks.size()));
  check_strategy_parts(strategy.parts);
  if (strategy.parts.server != nullptr)
    throw UserError(fmt::format(
        "the strategy lets rank {} serve, and a Trainer only trains; with Roles "
        "(distributed/communicator/roles.h) call Roles::serve() there, and give the Trainers of the other "
        "ranks Roles::training(), or choose a strategy with which all ranks train",
        ranks.rank()));
}

void check_options(const TrainerOptions& options) {
  const auto require = [](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least)
      throw UserError(fmt::format("the Trainer's {} is {}; give {} or more", what, value, least));
  };
  require("number of epochs", options.epochs, 0);
  require("number of steps", options.steps.value_or(0), 0);
  require("number of checkpoints to keep", options.keep, 1);
  require("save_every", options.save_every.value_or(1), 1);
  require("bucket_bytes", options.bucket_bytes, 1);
  require("verify_every", options.verify_every, 0);
  if (!(options.report_seconds >= 0))
    throw UserError(
        fmt::format("the Trainer's report_seconds is {}; give 0 or more", options.report_seconds));
}

}  // namespace plexaura

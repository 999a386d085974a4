#include "training/optimizers/optimizer_checks.h"

#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

using Kind = OptimizerSpec::Kind;

void check_optimizer(bool holds, std::string_view option, double value, std::string_view rule) {
  if (!holds) throw UserError(fmt::format("the optimizer has {} = {}; it must be {}", option, value, rule));
}

bool is_share(double value) { return value >= 0 && value < 1; }

// Checks the options that only rmsprop and adagrad have.
void check_rms(const OptimizerSpec& optimizer) {
  check_optimizer(is_share(optimizer.alpha), "alpha", optimizer.alpha, "at least 0 and less than 1");
  check_optimizer(optimizer.kind == Kind::rmsprop || !optimizer.centered, "centered", optimizer.centered,
                  "false for all but rmsprop");
  for (const auto& [name, value] : {std::pair{"lr_decay", optimizer.lr_decay},
                                    std::pair{"initial_accumulator", optimizer.initial_accumulator}}) {
    check_optimizer(std::isfinite(value) && value >= 0, name, value, "a number from 0 on");
    check_optimizer(optimizer.kind == Kind::adagrad || value == 0, name, value, "0 for all but adagrad");
  }
}

}  // namespace

void check_spec(const OptimizerSpec& optimizer) {
  constexpr std::string_view share = "at least 0 and less than 1";
  check_optimizer(optimizer.kind <= Kind::adagrad, "kind", static_cast<double>(optimizer.kind),
                  "sgd, adam, adamw, lars, lamb, rmsprop or adagrad");
  check_optimizer(is_share(optimizer.momentum), "momentum", optimizer.momentum, share);
  check_optimizer(!optimizer.nesterov || optimizer.momentum > 0, "momentum", optimizer.momentum,
                  "above 0 where nesterov is set");
  check_optimizer(optimizer.kind != Kind::adagrad || optimizer.momentum == 0, "momentum", optimizer.momentum,
                  "0 for adagrad, which has none");
  check_optimizer(has_momentum(optimizer.kind) || optimizer.momentum == 0, "momentum", optimizer.momentum,
                  "0 for adam, adamw and lamb, whose momentum is beta1");
  check_optimizer(steps_like_sgd(optimizer.kind) || !optimizer.nesterov, "nesterov", optimizer.nesterov,
                  "false for all but sgd and lars");
  check_optimizer(is_share(optimizer.beta1), "beta1", optimizer.beta1, share);
  check_optimizer(is_share(optimizer.beta2), "beta2", optimizer.beta2, share);
  check_optimizer(std::isfinite(optimizer.epsilon) && optimizer.epsilon > 0, "epsilon", optimizer.epsilon,
                  "a number above 0");
  check_rms(optimizer);
  check_optimizer(std::isfinite(optimizer.weight_decay) && optimizer.weight_decay >= 0, "weight_decay",
                  optimizer.weight_decay, "a number from 0 on");
  check_optimizer(std::isfinite(optimizer.trust_coefficient) && optimizer.trust_coefficient > 0,
                  "trust_coefficient", optimizer.trust_coefficient, "a number above 0");
  check_optimizer(std::isfinite(optimizer.max_gradient_norm) && optimizer.max_gradient_norm >= 0,
                  "max_gradient_norm", optimizer.max_gradient_norm, "a number above 0, or 0 for no limit");
  const double ema = optimizer.ema.value_or(0.5);
  check_optimizer(ema > 0 && ema < 1, "ema", ema, "above 0 and less than 1");
}

void check_group(const ParameterGroup& group) {
  const std::string where = fmt::format("the group of parameters '{}'", group.pattern);
  const double rate = group.options.rate;
  const double decay = group.options.decay.value_or(0);
  if (!std::isfinite(rate) || rate <= 0)
    throw UserError(
        fmt::format("{} has rate = {}; it must be a number above 0, the factor of the learning rate; freeze "
                    "the parameters if they are not to be trained",
                    where, rate));
  if (!std::isfinite(decay) || decay < 0)
    throw UserError(fmt::format("{} has decay = {}; it must be a number from 0 on", where, decay));
  const OptimizerSpec* const rule = group.options.optimizer.spec();
  if (rule == nullptr) return;
  try {
    check_spec(*rule);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", where, error.what()));
  }
  if (rule->weight_decay != 0)
    throw UserError(fmt::format(
        "{} has an optimizer with weight_decay = {}, which has no effect; set the decay of the group", where,
        rule->weight_decay));
  if (rule->max_gradient_norm != 0 || rule->scaled_loss || !rule->groups.empty() || rule->ema)
    throw UserError(
        fmt::format("{} has an optimizer with max_gradient_norm, scaled_loss, groups or ema, which have no "
                    "effect there; set them in the OptimizerSpec that has the group",
                    where));
}

}  // namespace plexaura

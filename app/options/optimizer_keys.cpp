#include <iterator>

#include "app/options/run_keys.h"

namespace plexaura {

namespace {

// Returns the keys of the optimizer's rule. training.optimizer has further keys, such as the rate and the
// decay.
std::vector<Key> rule_keys(OptimizerSpec& optimizer) {
  const Need momentum{.key = "optimizer.name", .values = {"sgd", "lars", "rmsprop"}};
  const Need nesterov{.key = "optimizer.name", .values = {"sgd", "lars"}};
  const Need squares{.key = "optimizer.name", .values = {"adam", "adamw", "lamb", "rmsprop", "adagrad"}};
  const Need rmsprop{.key = "optimizer.name", .values = {"rmsprop"}};
  const Need adagrad{.key = "optimizer.name", .values = {"adagrad"}};
  const Need moments{.key = "optimizer.name", .values = {"adam", "adamw", "lamb"}};
  constexpr NumberRange below_one{.minimum = 0, .below = 1};
  return {
      {.name = "optimizer.name",
       .into = one_of(optimizer.kind, {{"sgd", OptimizerSpec::sgd},
                                       {"adam", OptimizerSpec::adam},
                                       {"adamw", OptimizerSpec::adamw},
                                       {"lars", OptimizerSpec::lars},
                                       {"lamb", OptimizerSpec::lamb},
                                       {"rmsprop", OptimizerSpec::rmsprop},
                                       {"adagrad", OptimizerSpec::adagrad}}),
       .required = true,
       .meaning = "the optimizer; `lars` and `lamb` are for [large batches](#large-batches), `rmsprop` and "
                  "`adagrad` are [those of PyTorch](#rmsprop-and-adagrad)"},
      {.name = "optimizer.trust_coefficient",
       .into = &optimizer.trust_coefficient,
       .range = {.above = 0},
       .needs = {.key = "optimizer.name", .values = {"lars"}},
       .meaning = "how far a step goes at a learning rate of 1, as a share of the length of the parameter"},
      {.name = "optimizer.momentum",
       .into = &optimizer.momentum,
       .range = below_one,
       .needs = momentum,
       .meaning = "momentum"},
      {.name = "optimizer.nesterov",
       .into = &optimizer.nesterov,
       .needs = nesterov,
       .meaning = "Nesterov momentum; needs a momentum above 0"},
      {.name = "optimizer.beta1",
       .into = &optimizer.beta1,
       .range = below_one,
       .needs = moments,
       .meaning = "decay of the first moment"},
      {.name = "optimizer.beta2",
       .into = &optimizer.beta2,
       .range = below_one,
       .needs = moments,
       .meaning = "decay of the second moment"},
      {.name = "optimizer.epsilon",
       .into = &optimizer.epsilon,
       .range = {.above = 0},
       .needs = squares,
       .meaning = "added to the denominator. It, the learning rate, the weight decay, the trust coefficient, "
                  "the norm, `lr_decay` and `initial_accumulator` must be representable in "
                  "`training.precision`"},
      {.name = "optimizer.alpha",
       .into = &optimizer.alpha,
       .range = below_one,
       .needs = rmsprop,
       .meaning = "decay of the mean square"},
      {.name = "optimizer.centered",
       .into = &optimizer.centered,
       .needs = rmsprop,
       .meaning = "divides by the standard deviation of the gradient instead of the root of its mean square. "
                  "`--resume` may not change it"},
      {.name = "optimizer.lr_decay",
       .into = &optimizer.lr_decay,
       .range = {.minimum = 0},
       .needs = adagrad,
       .meaning = "update n, from 1, divides the learning rate of the schedule by 1 + (n - 1) `lr_decay`"},
      {.name = "optimizer.initial_accumulator",
       .into = &optimizer.initial_accumulator,
       .range = {.minimum = 0},
       .needs = adagrad,
       .meaning = "sum of squares before the first update"},
  };
}

}  // namespace

std::vector<Key> optimizer_keys(TrainingInput& input, OptimizerSpec& optimizer) {
  std::vector<Key> keys = rule_keys(optimizer);
  std::vector<Key> own{
      {.name = "optimizer.learning_rate",
       .into = &input.learning_rate,
       .range = {.above = 0},
       .required = true,
       .rule = "one learning rate for all parameters, a number",
       .meaning = "the peak learning rate of the schedule"},
      {.name = "optimizer.base_batch_size",
       .into = &input.base_batch_size,
       .range = {.minimum = 1, .maximum = largest_batch},
       .late_default = {.set = [&input] { input.base_batch_size = input.samples_of_step(); }},
       .meaning = "the learning rate is the one for steps of this many samples, and is multiplied by the "
                  "samples of a step / these"},
      {.name = "optimizer.weight_decay",
       .into = &optimizer.weight_decay,
       .range = {.minimum = 0},
       .meaning = "weight decay of all trainable parameters; with `lars` and `lamb`, of those with two axes "
                  "or more"},
      {.name = "optimizer.max_gradient_norm",
       .into = &optimizer.max_gradient_norm,
       .range = {.minimum = 0},
       .meaning = "gradient clipping: if the gradients of all parameters together have a larger Euclidean "
                  "norm, they are scaled down to this; 0: never. A norm above 1.8e19 counts as infinite in "
                  "float32: such gradients become 0. The norm is that of the mean over all samples of the "
                  "step, whatever the number of ranks; with strategies that do not sum gradients, over those "
                  "of each rank"},
      {.name = "optimizer.groups",
       .into = &input.groups,
       .meaning = "parameters with a learning rate, a weight decay or an optimizer of their own: [parameter "
                  "groups](#parameter-groups)"},
  };
  keys.insert(std::next(keys.begin()), std::move_iterator(own.begin()), std::move_iterator(own.end()));
  return keys;
}

std::vector<Key> group_keys(ParameterGroup& group, OptimizerSpec* rule) {
  std::vector<Key> keys = {
      {.name = "pattern",
       .into = &group.pattern,
       .required = true,
       .meaning = "fits the names of the group's parameters, as `--skip` has it"},
      {.name = "rate",
       .into = &group.options.rate,
       .range = {.above = 0},
       .meaning = "factor of the learning rate"},
      {.name = "decay",
       .into = &group.options.decay,
       .range = {.minimum = 0},
       .meaning = "the weight decay, instead of `training.optimizer.weight_decay`"},
  };
  if (rule == nullptr) return keys;
  for (Key& key : rule_keys(*rule)) keys.push_back(std::move(key));
  return keys;
}

}  // namespace plexaura

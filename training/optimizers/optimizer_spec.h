#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/params/placement.h"
#include "training/optimizers/parameter_groups.h"

namespace plexaura {

// The rule by which gradients change weights. The formulas are those of core/ops/optimizer_steps.h. A value;
// the functions below have no state.
struct OptimizerSpec {
  // For large batches, lars and lamb scale the step of each parameter to its length (Euclidean norm) ‖w‖:
  // You, Gitman and Ginsburg, arXiv:1708.03888, and You et al., arXiv:1904.00962.
  // lars: as sgd, along (g + weight_decay * w) * trust_coefficient * ‖w‖ / (‖g‖ + weight_decay * ‖w‖).
  // lamb: along u * ‖w‖ / ‖u‖, where u is the step of adamw at a learning rate of 1.
  // If the numerator or denominator of a ratio is 0, the ratio counts as 1. Parameters with at most one axis,
  // such as biases and the scales of normalisation, make the step of sgd with lars, and that of adam with lamb,
  // without weight decay.
  // rmsprop and adagrad: rms_step(), as torch.optim.RMSprop and Adagrad.
  enum class Kind : std::uint8_t { sgd, adam, adamw, lars, lamb, rmsprop, adagrad };
  using enum Kind;  // OptimizerSpec::adam
  Kind kind = Kind::sgd;
  double momentum = 0;    // sgd, lars, rmsprop
  bool nesterov = false;  // sgd, lars, needs momentum
  double beta1 = 0.9;     // adam, adamw, lamb
  double beta2 = 0.999;
  double epsilon = 1e-8;  // adam, adamw, lamb, rmsprop, adagrad; PyTorch's Adagrad has 1e-10
  double alpha = 0.99;    // rmsprop: factor of the old mean square
  bool centered = false;  // rmsprop: divides by the standard deviation instead of the root of the mean square
  double lr_decay = 0;    // adagrad: update n, from 1, has the learning rate / (1 + (n - 1) * lr_decay)
  double initial_accumulator = 0;  // adagrad: the sum of squares before the first update
  double weight_decay = 0;  // weight decay of parameters whose group sets none; for lars and lamb see Kind
  double trust_coefficient = 0.001;  // lars
  // If the gradients of all trainables, as one vector, are longer than this, they are scaled down to this
  // length (the Euclidean norm), as torch.nn.utils.clip_grad_norm_ does; 0: never.
  double max_gradient_norm = 0;
  // Parameters with a learning rate, a weight decay or a rule of their own. With lars and lamb, parameters with at
  // most one axis never decay.
  std::vector<ParameterGroup> groups = {};
  // Gradients are multiplied by the step's loss scale, and the update divides by it before anything else.
  bool scaled_loss = false;
  // Also keeps an average of each trained parameter, as the last state of the store. The first update sets it to the new
  // value of the parameter, and each later one to ema * average + (1 - ema) * the new value, as
  // torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(). Above 0 and below 1; empty: there are no averages.
  // See training/optimizers/averaged_weights.h.
  std::optional<double> ema = {};
};

// Returns the name by which a checkpoint knows the optimizer. The name of one rule is "sgd", "adam", "adamw", "lars",
// "lamb", "rmsprop", "centered rmsprop", whose state has another meaning, or "adagrad". Groups with rules of their own
// follow, with the groups before them, which decide what is left to them: "adamw (*.bias: sgd with momentum)". With
// averages "with training.ema" is added.
std::string optimizer_name(const OptimizerSpec& optimizer);

// Returns the number of state arenas that the optimizer needs, for the rule that needs most, and for the averages: 0 to
// 4.
std::int64_t state_count(const OptimizerSpec& optimizer);

struct UpdateOptions {
  std::set<std::string> replaced = {};                // see replaced_buffers()
  std::optional<std::set<std::string>> updated = {};  // the buffers that may change; empty: all
  // The model has a LossOutputs::weight: divides the gradients by the mean weight of the step's samples.
  bool is_weighted = false;
  // If the loss or a gradient is not finite, or a rank has failed, nothing changes, and TailSlot::failed is set.
  // With a LossScale the step is skipped instead.
  bool is_guarded = false;
};

// Builds the graph of the update program, in place on the arena slices. In each bucket it has one node for neighbouring
// parameters with the same rule, or the nodes of lars and lamb for each parameter. The norm of all gradients comes before, if
// it is limited or there is a LossScale. Parameters outside of the buckets do not change. For the last bucket it
// updates the buffers: a replaced buffer gets the sum of the ranks' next values, and the sum of the ranks' changes
// is added to each other buffer. Throws UserError that names an option with an invalid value.
void build_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                  std::span<const Bucket> buckets, const UpdateOptions& options = {});

// Builds the update of the buffers alone, which build_update() makes with that of the last bucket.
void build_buffer_update(Graph& graph, const Placement& placement, const UpdateOptions& options);

// Builds the update of one bucket alone. The norm of all gradients is not limited, the loss has no LossScale
// and no weight, and nothing is guarded.
void build_bucket_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                         const Bucket& bucket, const std::set<std::string>& replaced = {});

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/graph.h"
#include "core/params/placement.h"

namespace plexaura {

// How gradients become weights. The formulas are those of core/ops/optimizer_steps.h. A value; the functions below
// keep nothing of a call.
struct OptimizerSpec {
  // For large batches, lars and lamb scale the step of each parameter to its length (Euclidean norm) ‖w‖: You, Gitman
  // and Ginsburg, arXiv:1708.03888, and You et al., arXiv:1904.00962.
  // lars: as sgd, along (g + weight_decay * w) * trust_coefficient * ‖w‖ / (‖g‖ + weight_decay * ‖w‖).
  // lamb: along u * ‖w‖ / ‖u‖, where u is the step of adamw at a learning rate of 1.
  // A ratio whose numerator or denominator is 0 counts as 1. Parameters of one axis, as biases and the scales of
  // normalisation, make the step of sgd and adam, without weight decay.
  enum class Kind : std::uint8_t { sgd, adam, adamw, lars, lamb };
  using enum Kind;  // OptimizerSpec::adam
  Kind kind = Kind::sgd;
  double momentum = 0;    // sgd, lars
  bool nesterov = false;  // sgd, lars, needs momentum
  double beta1 = 0.9;     // adam, adamw, lamb
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;           // of all trainables, but see lars and lamb
  double trust_coefficient = 0.001;  // lars
  // Where the gradients of all trainables, seen as one vector, are longer than this, they are scaled down to this
  // length (the Euclidean norm), as torch.nn.utils.clip_grad_norm_ does it; 0: never.
  double max_gradient_norm = 0;
  // Gradients come multiplied by the step's loss scale, which is divided out before anything else.
  bool scaled_loss = false;
};

// "sgd", "adam", "adamw", "lars" or "lamb".
std::string_view optimizer_name(const OptimizerSpec& optimizer);

// State arenas that the optimizer needs: 0, 1 or 2.
std::int64_t state_count(const OptimizerSpec& optimizer);

struct UpdateOptions {
  std::set<std::string> replaced = {};  // see replaced_buffers()
  // Where the loss or a gradient is not finite, nothing changes, and TailSlot::failed is set; with a LossScale the step is
  // skipped.
  bool is_guarded = false;
};

// The update program's graph: one node of the optimizer per bucket, or the nodes of lars and lamb per parameter, in
// place on the arena slices, behind the norm of all gradients where that is limited, and for the last bucket the buffers:
// a replaced one takes the sum of its next values, each other one adds what the sum brings it.
// Throws UserError that names a number that makes no update.
void build_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                  std::span<const Bucket> buckets, const UpdateOptions& options = {});

// The same of one bucket by itself. The norm of all gradients is not limited, the loss has no LossScale, and nothing is
// guarded.
void build_bucket_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                         const Bucket& bucket, const std::set<std::string>& replaced = {});

}  // namespace plexaura

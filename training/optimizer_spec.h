#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/graph/graph.h"
#include "core/params/placement.h"

namespace plexaura {

// How gradients become weights. The formulas are those of core/ops/optimizer_steps.h. A value; the functions below
// keep nothing of a call.
struct OptimizerSpec {
  enum class Kind : std::uint8_t { sgd, adam, adamw };
  using enum Kind;  // OptimizerSpec::adam
  Kind kind = Kind::sgd;
  double momentum = 0;    // sgd
  bool nesterov = false;  // sgd, needs momentum
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // of all trainables
  // Where the gradients of all trainables, seen as one vector, are longer than this, they are scaled down to this
  // length (the Euclidean norm), as torch.nn.utils.clip_grad_norm_ does it; 0: never.
  double max_gradient_norm = 0;
  // Gradients come multiplied by the step's loss scale, which is divided out before anything else.
  bool scaled_loss = false;
};

// "sgd", "adam" or "adamw".
std::string_view optimizer_name(const OptimizerSpec& optimizer);

// State arenas that the optimizer needs: 0, 1 or 2.
std::int64_t state_count(const OptimizerSpec& optimizer);

// The update program's graph: one node of the optimizer per bucket, in place on the arena slices, behind the
// norm of all gradients where that is limited, and for the last bucket the buffers, which take their summed changes.
// Throws UserError that names a number that makes no update.
void build_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                  std::span<const Bucket> buckets);

}  // namespace plexaura

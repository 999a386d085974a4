#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses of vectors along the last axis, made of other ops. x [..., D] has the losses [...], and `reduction`
// combines them: their mean (0 of none), their sum, or none for the losses themselves. Vectors have one
// floating type and shape, which is not broadcast.

struct TripletMarginOptions {
  double margin = 1;
  double p = 2;           // order of the norm: above 0, or infinite
  double epsilon = 1e-6;  // added to each element of a difference before the norm is taken
  bool swap = false;      // takes the smaller of the distances anchor - negative and positive - negative
  Reduction reduction = Reduction::mean;
};

// max(0, margin + |anchor - positive| - |anchor - negative|), with the norm of order p. Its gradient is 0 at
// the kink.
PLEXAURA_API Node triplet_margin(Operand anchor, Operand positive, Operand negative,
                                 TripletMarginOptions options = {});

// 1 - cosine_similarity(a, b) if the target is 1, and max(0, cosine_similarity(a, b) - margin) if it is -1. A loss
// with another target is 0. The target has the dtype of the vectors, and their shape without the last axis. The
// gradient is 0 at the kink.
PLEXAURA_API Node cosine_embedding(Operand a, Operand b, Operand target, double margin = 0,
                                   Reduction reduction = Reduction::mean);

}  // namespace plexaura

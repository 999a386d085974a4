#pragma once

#include "models/zoo/model.h"

namespace plexaura {

// Returns the loss of a language model: the cross-entropy of each position against the token after it, as a
// mean over all positions of a step whose target is not the ignored token, no_target
// (training/data/text/token_windows.h). Validation reports "perplexity", e to the power of this mean over all
// validation samples, and "accuracy", the share of these positions at which the target's output is the
// largest.
//   outputs [N, positions, tokens], floating; targets int64 [N, positions].
LossOutputs build_language_model(Operand outputs, Operand targets);

}  // namespace plexaura

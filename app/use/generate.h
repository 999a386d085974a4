#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "app/options/command_line.h"
#include "app/use/next_token_logits.h"
#include "training/data/random.h"
#include "training/data/text/vocabulary.h"

namespace plexaura {

// Draws one of GenerateOptions::top_k tokens with the probabilities softmax(logits / temperature); with the temperature 0
// returns the token with the largest logit. Never returns the unknown token. Of equal logits that of the lower token
// comes first. Throws UserError if a logit is not finite.
std::int64_t drawn_token(std::span<const double> logits, const Vocabulary& vocabulary,
                         const GenerateOptions& options, Random& random);

// Returns the prompt and the tokens after it, each of which depends on the tokens before it that fit into one window. The
// same options and weights give the same text. `next_logits` has not been called before. Throws UserError for an empty
// prompt, and one that is not UTF-8 unless the tokens are bytes.
std::string generated_text(const GenerateOptions& options, NextTokenLogits& next_logits,
                           const Vocabulary& vocabulary);

}  // namespace plexaura

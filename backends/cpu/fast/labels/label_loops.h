#pragma once

#include <cstdint>

namespace plexaura::fast {

// Loops over the logits of one sample.

// -log softmax(logits)[label], NaN for a label out of range; `probabilities` may be null.
double loss_of_row(const float* logits, std::int64_t classes, std::int64_t label, float* probabilities);

// scale * (probabilities - 1 at the label).
void loss_grad_of_row(const float* probabilities, std::int64_t classes, std::int64_t label, float scale,
                      float* diff_logits);

// How many classes come before the label: larger logits, NaNs, and equal logits of lower classes.
std::int64_t classes_before(const float* logits, std::int64_t classes, std::int64_t label);

}  // namespace plexaura::fast

#pragma once

#include <cstdint>

namespace plexaura::fast {

// Loops over the logits of one sample.

// Returns -log softmax(logits)[label], or NaN if the label is out of range. Writes softmax(logits) unless
// `probabilities` is null.
double loss_of_row(const float* logits, std::int64_t classes, std::int64_t label, float* probabilities);

// diff_logits = scale * (probabilities - 1 at the label).
void loss_grad_of_row(const float* probabilities, std::int64_t classes, std::int64_t label, float scale,
                      float* diff_logits);

// Returns how many classes come before the label in the order of their logits. NaNs and larger logits come
// before it, and so do equal logits of classes with a smaller index.
std::int64_t classes_before(const float* logits, std::int64_t classes, std::int64_t label);

}  // namespace plexaura::fast

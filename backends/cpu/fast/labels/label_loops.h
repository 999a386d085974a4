#pragma once

#include <cstdint>

namespace plexaura::fast {

// Loops over the logits of one sample. T is float or double.

// Returns -log softmax(logits)[label], or NaN if the label is out of range. Writes softmax(logits) unless
// `probabilities` is null.
template <class T>
double loss_of_row(const T* logits, std::int64_t classes, std::int64_t label, T* probabilities);

// diff_logits = factor * (probabilities - 1 at the label).
template <class T>
void loss_grad_of_row(const T* probabilities, std::int64_t classes, std::int64_t label, T factor,
                      T* diff_logits);

// Returns how many classes come before the label in the order of their logits. NaNs and larger logits come
// before it, and so do equal logits of classes with a smaller index.
std::int64_t classes_before(const float* logits, std::int64_t classes, std::int64_t label);

}  // namespace plexaura::fast

#pragma once

#include <cstddef>

#include "backends/cpu/fast/channel_view.h"

namespace plexaura::fast {

// Batch normalisation over a whole value. Its statistics are shifted sums over one sample and block of
// channels, which are combined in double in a fixed order. So the results do not depend on the number of
// threads.

struct BatchNormForward {
  ChannelView view;
  bool relu = false;

  struct Operands {
    const float* src;
    const float* scale;
    const float* shift;
    const float* addend;  // null: nothing is added
    float* dst;           // null only for train(), which then does not read scale and shift
    float* mean;          // train() writes mean, variance and inverse unless null; normalise_by() does not
    float* variance;
    float* inverse;
  };
  std::size_t workspace() const;
  // Computes the moments, and normalises x by them.
  void train(const Operands& of, double epsilon, double* workspace) const;
  // Normalises x by the given mean and inverse.
  void normalise_by(const Operands& of, const float* mean, const float* inverse) const;
};

struct BatchNormBackward {
  ChannelView view;
  bool total = false;  // true: diff_src includes the gradient through mean and inverse

  struct Operands {
    const float* src;
    const float* scale;
    const float* mean;
    const float* inverse;
    const float* diff_dst;
    const float* mask;    // output of the ReLU that followed; null: no ReLU
    const float* addend;  // is added to diff_src; null: nothing is added
    float* diff_src;      // this output and those below may be null
    float* diff_scale;
    float* diff_shift;
    float* diff_mean;
    float* diff_inverse;
    float* masked;
  };
  std::size_t workspace() const;
  void run(const Operands& of, double* workspace) const;
};

// Computes the gradient of x from the gradients of its moments alone.
struct MomentsBackward {
  ChannelView view;

  struct Operands {
    const float* src;
    const float* mean;
    const float* inverse;
    const float* diff_mean;
    const float* diff_inverse;
    float* diff_src;
  };
  void run(const Operands& of) const;
};

}  // namespace plexaura::fast

#pragma once

#include <cstddef>

#include "backends/cpu/fast/channel_view.h"

namespace plexaura::fast {

// Batch normalisation over a whole value. Statistics are shifted sums over one sample and block of channels,
// joined in double in a fixed order: the results do not depend on the number of threads.

struct BatchNormForward {
  ChannelView view;
  bool relu = false;

  struct Operands {
    const float* src;
    const float* scale;
    const float* shift;
    const float* addend;  // null for none
    float* dst;           // may be null, as the next three; then scale and shift are not read
    float* mean;
    float* variance;
    float* inverse;
  };
  std::size_t workspace() const;
  // The moments, and x normalised by them.
  void train(const Operands& of, double epsilon, double* workspace) const;
  // With the mean and inverse that are given.
  void normalise_by(const Operands& of, const float* mean, const float* inverse) const;
};

struct BatchNormBackward {
  ChannelView view;
  bool total = false;  // diff_src counts mean and inverse as functions of x; else as values of their own

  struct Operands {
    const float* src;
    const float* scale;
    const float* mean;
    const float* inverse;
    const float* diff_dst;
    const float* mask;    // output of the ReLU that followed; null for none
    const float* addend;  // of diff_src; null for none
    float* diff_src;      // may be null, as the others
    float* diff_scale;
    float* diff_shift;
    float* diff_mean;
    float* diff_inverse;
    float* masked;
  };
  std::size_t workspace() const;
  void run(const Operands& of, double* workspace) const;
};

// The gradient of the moments alone.
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

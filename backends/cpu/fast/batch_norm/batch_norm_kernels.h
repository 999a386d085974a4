#pragma once

#include <cstddef>

#include "backends/cpu/fast/channel_view.h"

namespace plexaura::fast {

// Batch normalisation over a whole value. Statistics are shifted sums over one sample and block of channels,
// joined in double in a fixed order: the results do not depend on the number of threads.

struct BatchNormForward {
  ChannelView view;
  float epsilon;
  bool relu = false;

  struct Operands {
    const float* src;
    const float* scale;
    const float* shift;
    const float* addend;  // null for none
    float* dst;           // may be null, as the next two
    float* mean;
    float* variance;
  };
  std::size_t workspace() const;
  void train(const Operands& of, double* workspace) const;
  // With the mean and variance that are given.
  void infer(const Operands& of, const float* mean, const float* variance) const;
};

struct BatchNormBackward {
  ChannelView view;
  float epsilon;

  struct Operands {
    const float* src;
    const float* scale;
    const float* mean;
    const float* variance;
    const float* diff_dst;
    const float* mask;  // output of the ReLU that followed; null for none
    float* diff_src;    // may be null, as the others
    float* diff_scale;
    float* diff_shift;
    float* masked;
  };
  std::size_t workspace() const;
  void run(const Operands& of, double* workspace) const;
};

}  // namespace plexaura::fast

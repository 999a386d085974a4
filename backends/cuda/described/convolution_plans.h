#pragma once

#include <memory>
#include <string>

#include "backends/cuda/described/gpus.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::described {

// A library's plan, as far as it is known without a GPU.
struct PlanOutline {
  std::string name;
  std::size_t workspace = 0;
};

// The plans that there are for convolutions on a GPU: those of cuDNN, to which the GPU is described, or, in a build
// without cuDNN, one for each convolution that is assumed to need no scratch memory.
class ConvolutionPlans {
 public:
  ConvolutionPlans(const vendor::Options& options, const Gpu& gpu);
  ~ConvolutionPlans();

  std::string source() const;  // "cuDNN 9.19.0"
  std::vector<PlanOutline> plans(const vendor::Convolution& problem) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace plexaura::cuda::described

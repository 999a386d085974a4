#pragma once

#include <memory>
#include <string>

#include "backends/cuda/described/gpus.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::described {

// The name and the workspace, in bytes, of a library's plan, as far as they are known without a GPU.
struct PlanOutline {
  std::string name;
  std::size_t workspace = 0;
};

// The plans for convolutions on a described GPU. In a build with cuDNN, cuDNN provides them. A build without
// cuDNN assumes one plan for each convolution, which needs no workspace.
class ConvolutionPlans {
 public:
  ConvolutionPlans(const vendor::Options& options, const Gpu& gpu);
  ~ConvolutionPlans();

  std::string source() const;  // returns a text such as "cuDNN 9.19.0"
  std::vector<PlanOutline> plans(const vendor::Convolution& problem) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace plexaura::cuda::described

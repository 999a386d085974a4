// The plans for convolutions in a build with cuDNN, which makes plans for a GPU that is only described to it.

#include "backends/cuda/described/convolution_plans.h"
#include "backends/cuda/vendor/cudnn.h"

namespace plexaura::cuda::described {

struct ConvolutionPlans::Implementation {
  vendor::Cudnn cudnn;
};

ConvolutionPlans::ConvolutionPlans(const vendor::Options& options, const Gpu& gpu)
    : implementation_(new Implementation{vendor::Cudnn(options, json_of(gpu))}) {}
ConvolutionPlans::~ConvolutionPlans() = default;

std::string ConvolutionPlans::source() const { return vendor::cudnn_version(); }

std::vector<PlanOutline> ConvolutionPlans::plans(const vendor::Convolution& problem) const {
  std::vector<PlanOutline> outlines;
  for (const auto& plan : implementation_->cudnn.plans(problem))
    outlines.push_back({plan->name(), plan->workspace()});
  return outlines;
}

}  // namespace plexaura::cuda::described

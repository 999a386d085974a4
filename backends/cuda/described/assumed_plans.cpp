// The plans for convolutions in a build without cuDNN.

#include "backends/cuda/described/convolution_plans.h"

namespace plexaura::cuda::described {

struct ConvolutionPlans::Implementation {};

ConvolutionPlans::ConvolutionPlans(const vendor::Options&, const Gpu&) {}
ConvolutionPlans::~ConvolutionPlans() = default;

std::string ConvolutionPlans::source() const { return "convolutions assumed"; }

std::vector<PlanOutline> ConvolutionPlans::plans(const vendor::Convolution&) const {
  return {{.name = "assumed cudnn"}};
}

}  // namespace plexaura::cuda::described

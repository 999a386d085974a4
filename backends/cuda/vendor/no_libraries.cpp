// The libraries of a plugin that was built without NVIDIA's libraries. The plugin's own kernels do all the
// work.

#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::vendor {

namespace {

class NoLibraries final : public Libraries {
 public:
  std::string versions() const override { return ""; }
  Plans plans(const MatrixProduct&) override { return {}; }
  Plans plans(const Convolution&) override { return {}; }
};

}  // namespace

std::unique_ptr<Libraries> open_libraries(const Options&) { return std::make_unique<NoLibraries>(); }

}  // namespace plexaura::cuda::vendor

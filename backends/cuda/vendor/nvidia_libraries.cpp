#include "backends/cuda/vendor/cublaslt.h"
#include "backends/cuda/vendor/cudnn.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::vendor {

namespace {

class NvidiaLibraries final : public Libraries {
 public:
  explicit NvidiaLibraries(const Options& options) : cublaslt_(options), cudnn_(options) {}

  std::string versions() const override { return cublaslt_version() + ", " + cudnn_version(); }
  Plans plans(const MatrixProduct& problem) override { return cublaslt_.plans(problem); }
  Plans plans(const Convolution& problem) override { return cudnn_.plans(problem); }

 private:
  Cublaslt cublaslt_;
  Cudnn cudnn_;
};

}  // namespace

std::unique_ptr<Libraries> open_libraries(const Options& options) {
  return std::make_unique<NvidiaLibraries>(options);
}

}  // namespace plexaura::cuda::vendor

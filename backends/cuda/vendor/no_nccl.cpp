// The sums of a plugin that was built without NCCL: GPUs do not sum over ranks.

#include "backends/cuda/vendor/sums.h"
#include "core/base/error.h"

namespace plexaura::cuda::vendor {

std::string sums_version() { return ""; }

std::string make_token() { throw InternalError("this plugin was built without NCCL"); }

std::unique_ptr<Sums> join(const Membership&, double) {
  throw InternalError("this plugin was built without NCCL");
}

}  // namespace plexaura::cuda::vendor

#pragma once

#include <memory>
#include <string>

#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::vendor {

// The matrix products of cuBLASLt, on the opened GPU.
class Cublaslt {
 public:
  explicit Cublaslt(const Options& options);

  Plans plans(const MatrixProduct& problem) const;

 private:
  Options options_;
  std::shared_ptr<void> handle_;
};

std::string cublaslt_version();  // returns a text such as "cuBLAS 13.1.0"

}  // namespace plexaura::cuda::vendor

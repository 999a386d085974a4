#pragma once

#include <memory>
#include <string>

#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda::vendor {

class Descriptor;

// The convolutions of cuDNN, by its graph API.
class Cudnn {
 public:
  // Makes plans for the opened GPU.
  explicit Cudnn(const Options& options);
  // Makes plans for a GPU that is not present and is described in cuDNN's JSON. These plans cannot be run.
  Cudnn(const Options& options, const std::string& described_gpu);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  Plans plans(const Convolution& problem) const;

  struct Target;

 private:
  void add_plan(Plans& plans, const Descriptor& graph, const Descriptor& configuration,
                const Convolution& problem) const;

  Options options_;
  std::shared_ptr<const Target> target_;
};

std::string cudnn_version();  // returns a text such as "cuDNN 9.19.0"

}  // namespace plexaura::cuda::vendor

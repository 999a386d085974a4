#pragma once

#include <cuda_runtime_api.h>

namespace plexaura::cuda::vendor {

// Allows this thread, while it lives, to make calls that CUDA otherwise forbids during a capture. A library
// loads a kernel when it first enqueues it.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  // The mode that the thread had before, once the constructor has exchanged it.
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace plexaura::cuda::vendor

#pragma once

#include <cuda_runtime_api.h>

namespace plexaura::cuda::vendor {

// While it lives, this thread may call what CUDA otherwise forbids where a stream is captured: a library loads a kernel
// when it enqueues it for the first time.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // afterwards the one before
};

}  // namespace plexaura::cuda::vendor

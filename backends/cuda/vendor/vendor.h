#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/runtime/runtime.h"
#include "core/device/backend.h"
#include "core/ops/conv2d.h"

// All that the plugin asks of NVIDIA's libraries, so that it can be built without them, and tested without a GPU: the
// tests have a simulation of these functions. A function that fails throws DeviceError with the library's words. Calls
// come from one thread at a time.

namespace plexaura::cuda::vendor {

constexpr std::size_t operand_alignment = 64;     // bytes: what the engine promises for every value
constexpr std::size_t workspace_alignment = 256;  // bytes: what the libraries want

// One way in which a library computes a problem. Its results are the same from run to run.
class Plan {
 public:
  virtual ~Plan() = default;
  // "cudnn engine 46 24=14": names the algorithm with all its settings, so that times that were measured under a name hold for
  // that algorithm wherever the library ranks it.
  virtual const std::string& name() const = 0;
  // Bytes of scratch memory, uninitialised. Like bind() it throws DeviceError where the library cannot run the plan after all.
  virtual std::size_t workspace() const = 0;
  // What enqueues the work on a stream, which may be captured, and allocates nothing. The inputs stand in the order of
  // the op's inputs. The plan must outlive it.
  virtual std::function<void(runtime::Stream* stream)> bind(std::span<const Address> inputs, Address output,
                                                            Address workspace) const = 0;
};
using Plans = std::vector<std::shared_ptr<const Plan>>;

// Row-major matrices: a [rows, inner] times b [inner, columns], each perhaps stored as its transpose. Floating; nothing
// is empty.
struct MatrixProduct {
  DType dtype = DType::float32;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t products = 1;  // so many, one behind the other
  bool one_a = false;         // the same matrix in all of them
  bool one_b = false;
  bool bias = false;  // a third input, which is added to each row of the result
};

// A convolution without bias, or one of its gradients. Floating; nothing is empty. Its values are row-major, or lie channels
// last: images as [N, H, W, C], and weights [O, C, H, W] as [O, H, W, C].
struct Convolution {
  enum class Kind : std::uint8_t { forward, input_grad, weight_grad };
  Kind kind = Kind::forward;
  DType dtype = DType::float32;
  Shape x;
  Shape weights;
  Shape y;
  Conv2dOptions options;
  bool channels_last = false;
};

struct Options {
  bool tf32 = false;  // factors of type float32 may be rounded to 10 bits behind the point
};

class Libraries {
 public:
  virtual ~Libraries() = default;
  virtual std::string versions() const = 0;  // "cuBLAS 13.1.0, cuDNN 9.19.0"; empty where there are none
  // The ways to compute a problem, first the one that the library takes for the fastest. Empty where it has none.
  virtual Plans plans(const MatrixProduct& problem) = 0;
  virtual Plans plans(const Convolution& problem) = 0;
};

// Of the GPU that was opened.
std::unique_ptr<Libraries> open_libraries(const Options& options);

}  // namespace plexaura::cuda::vendor

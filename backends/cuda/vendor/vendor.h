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

// All that the plugin uses of NVIDIA's libraries. So it can be built without them, and tested without a GPU:
// the tests have a simulation of these functions. A function that fails throws DeviceError with the library's
// message. Only one thread may call them at a time.

namespace plexaura::cuda::vendor {

constexpr std::size_t operand_alignment = 64;     // in bytes; the engine guarantees it for every value
constexpr std::size_t workspace_alignment = 256;  // in bytes; the libraries need it

// One way in which a library computes a problem. Its results are the same in every run.
class Plan {
 public:
  virtual ~Plan() = default;
  // Names the algorithm with all its settings, as "cudnn engine 46 24=14". So times measured under this name
  // remain valid, wherever the library ranks the algorithm.
  virtual const std::string& name() const = 0;
  // Returns the bytes of workspace, which need not be initialised. Throws DeviceError, as bind() does, if the
  // library turns out not to support the plan.
  virtual std::size_t workspace() const = 0;
  // Returns a function that enqueues the work on a stream, which may be captured, and allocates nothing.
  // `inputs` are in the order of the op's inputs. The plan must outlive the function.
  virtual std::function<void(runtime::Stream* stream)> bind(std::span<const Address> inputs, Address output,
                                                            Address workspace) const = 0;
};
using Plans = std::vector<std::shared_ptr<const Plan>>;

// A product of row-major matrices, a [rows, inner] times b [inner, columns], each possibly stored as its
// transpose. The dtype is floating, and nothing is empty.
struct MatrixProduct {
  DType dtype = DType::float32;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t products = 1;  // number of consecutive products
  bool one_a = false;         // true if all products use the same matrix a
  bool one_b = false;
  bool bias = false;  // true if a third input is added to each row of the result
};

// A convolution without bias, or one of its gradients. The dtype is floating, and nothing is empty. Values
// are row-major, or have channels last: images as [N, H, W, C], and weights [O, C, H, W] as [O, H, W, C].
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
  // True if factors of type float32 may be rounded to TF32, which has 10 bits after the point.
  bool tf32 = false;
};

class Libraries {
 public:
  virtual ~Libraries() = default;
  virtual std::string versions() const = 0;  // such as "cuBLAS 13.1.0, cuDNN 9.19.0"; empty without libraries
  // Returns plans for a problem, beginning with the plan that the library considers fastest. Returns an empty
  // list if there is none.
  virtual Plans plans(const MatrixProduct& problem) = 0;
  virtual Plans plans(const Convolution& problem) = 0;
};

// Opens the libraries on the opened GPU.
std::unique_ptr<Libraries> open_libraries(const Options& options);

}  // namespace plexaura::cuda::vendor

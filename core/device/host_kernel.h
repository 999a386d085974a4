#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// A value for a portable kernel: host memory, row-major, no padding. The data of an output that nobody wants
// is null, and that of an input that the kernel does not read.
struct HostView {
  std::byte* data = nullptr;
  const TensorType* type = nullptr;

  const Shape& shape() const { return type->shape; }
  DType dtype() const { return type->dtype; }
  std::int64_t elements() const { return type->shape.elements(); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct HostCall {
  const Op& op;
  std::span<const HostView> inputs;
  std::span<const HostView> outputs;  // uninitialised
};

// The plain kernel of an op for every dtype: the oracle for all others, the float64 path, and what a backend
// with host memory (or a simulated one) falls back to. A plain function, so that it may live in any shared
// object. The result does not depend on the number of threads. May be called from several threads at a time.
using HostKernel = void (*)(const HostCall& call);

// Registration at run time, by op name; done once per name, from any shared object, before the first compile
// that needs it. Throws UserError for a name that has another kernel already.
PLEXAURA_API void register_host_kernel(std::string op_name, HostKernel kernel);

// Null where there is none.
PLEXAURA_API HostKernel find_host_kernel(std::string_view op_name);

}  // namespace plexaura

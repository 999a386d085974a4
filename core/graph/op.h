#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/graph/fields.h"
#include "core/graph/node.h"
#include "core/tensor/host_view.h"

namespace plexaura {

// Thrown by Op::infer: the text says which rule the inputs break and what to do, and Graph adds the place and the
// shapes. Readers of options throw it, too, and FieldReader adds the name of the option.
class PLEXAURA_API RuleError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The arguments of Op::vjp. All nodes belong to the graph that is being extended.
struct VjpRequest {
  std::span<const Node> inputs;
  std::span<const Node> outputs;
  // The gradient of each output. An empty Node stands for zero. It is empty for each saved output.
  std::span<const Node> grad_outputs;
  std::vector<bool> wanted;  // for each input: true if its gradient will be used
};

// The precision of an op in a program that computes in 16 bits instead of float32: see
// core/compile/mixed_precision.h.
enum class Precision : std::uint8_t {
  wide,     // computes in float32
  follows,  // computes in 16 bits if its inputs were computed in 16 bits, otherwise in float32
  narrow    // computes in 16 bits
};

// The facts about an op that passes and kernels need. They are stated only here, so that no other file lists
// ops by name. The tests check each op of ops.def against them.
struct OpTraits {
  int saved_outputs = 0;  // the number of last outputs that are made only for backward and get no gradient
  // The op draws random numbers: its results differ from run to run, and its nodes are never merged or folded.
  bool random = false;
  bool view = false;        // output 0 is input 0 with another shape, element by element in row-major order
  bool collective = false;  // needs other ranks: runs at a host point, unless the backend offers a kernel
  // True if element i of each output depends only on the elements of the inputs that broadcasting aligns with
  // it. The reference kernel must read all of these before it writes element i, so that an output may share
  // the memory of an input of the same type.
  bool elementwise = false;
  // The inputs that no kernel reads. Only the op's gradient needs them.
  std::vector<std::size_t> unread_inputs = {};
  Precision precision = Precision::wide;
  std::vector<std::size_t> wide_inputs = {};  // inputs that stay in float32 if the op computes in 16 bits
};

class Op;

// The reference kernel of an op, for every dtype that the op allows. All other kernels are compared with it,
// and a backend without a kernel for the op may run it. It is simple and exact, allocates nothing, and its
// results do not depend on the number of threads. 16-bit floats are computed in float, and their products are added up
// in float; most other sums of floats are added up in double. Several threads may call it at once. `op` returned it.
using HostKernel = void (*)(const Op& op, const HostCall& call);

// An operation: an immutable value that says what is computed, independent of devices and memory. It has a
// name, a shape rule, a gradient, a reference kernel and an options struct.
class PLEXAURA_API Op {
 public:
  virtual ~Op();

  // Unique among ops, for example "matmul".
  virtual std::string_view name() const = 0;

  // Returns the types of the outputs for these types of the inputs. This is the only definition of the shape
  // rule. Throws RuleError.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;

  // Returns the gradient of each input, built with the public builder functions, so that it is a graph and
  // can be differentiated again. An empty Node stands for zero. A gradient may have the broadcast shape of
  // the output: the caller sums it to the input's shape. For an op with saved outputs this is the total
  // derivative with respect to the inputs. Default: throws UserError, "has no gradient".
  virtual std::vector<Node> vjp(const VjpRequest& request) const;

  // Returns the reference kernel. Returns null for an op without one. Default: null; OpOf returns a kernel
  // that calls the op's compute() if the op has it.
  virtual HostKernel reference() const { return nullptr; }

  // Returns the op's options, which are used for printing, hashing and comparing. Default: none.
  virtual Description description() const { return {}; }

  virtual OpTraits traits() const { return {}; }
};

// An op with options. These are a struct that lists its fields as described in core/graph/fields.h. Kernels
// read options().
template <class Options>
class OpWith : public Op {
 public:
  explicit OpWith(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }
  Description description() const final { return description_of(options_); }

 private:
  Options options_;
};

PLEXAURA_API bool operator==(const Op& a, const Op& b);  // true if the names and all options are equal

[[noreturn]] PLEXAURA_API void throw_wrong_class(const Op& op);

// Returns the op as its own class, for kernels that read its options. The op may come from another shared
// object. Throws UserError if the op has another class.
template <class T>
const T& op_cast(const Op& op) {
  if (const auto* own = dynamic_cast<const T*>(&op)) return *own;
  throw_wrong_class(op);
}

// The base of the op `Own`. `Own` may have options and, as its reference kernel, a public member
//   void compute(const HostCall& call) const;
template <class Own, class Options = void>
class OpOf : public std::conditional_t<std::is_void_v<Options>, Op, OpWith<Options>> {
 public:
  using Base = std::conditional_t<std::is_void_v<Options>, Op, OpWith<Options>>;
  using Base::Base;

  // Returns null if `Own` has no compute(). Otherwise throws UserError if the op's class is not `Own`.
  HostKernel reference() const override {
    if constexpr (requires { &Own::compute; }) {
      op_cast<Own>(*this);
      return [](const Op& op, const HostCall& call) { static_cast<const Own&>(op).compute(call); };
    } else {
      return nullptr;
    }
  }
};

}  // namespace plexaura

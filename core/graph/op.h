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

// Thrown by Op::infer: the rule that the inputs break and what to do about it, without place or shapes, which
// Graph adds.
class PLEXAURA_API RuleError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// What an op is asked for when gradients are built. Everything in it is a node of the graph that is being
// extended.
struct VjpRequest {
  std::span<const Node> inputs;
  std::span<const Node> outputs;
  std::span<const Node>
      grad_outputs;          // one per output; an empty Node stands for zero, always so for saved outputs
  std::vector<bool> wanted;  // one per input: whether anybody will use its gradient
};

// What an op does where a program computes in 16 bits instead of float32: see core/compile/mixed_precision.h.
enum class Precision : std::uint8_t {
  wide,     // it computes in float32
  follows,  // in 16 bits where what it is given was computed in 16 bits, and in float32 otherwise
  narrow    // in 16 bits
};

// What passes and kernels must know about an op. All of it stands here, so that no other file lists ops by
// name; the tests run each op of ops.def against what it says.
struct OpTraits {
  int saved_outputs = 0;    // the last so many outputs are made for backward only: they receive no cotangent
  bool random = false;      // two equal ones are two draws: never merged
  bool view = false;        // output 0 is input 0 under another shape, element by element in row-major order
  bool collective = false;  // needs other ranks: runs at a host point, unless the backend offers a kernel
  // Element i of each output depends on nothing but the elements that broadcasting puts beside it. Its reference
  // kernel reads all of them before it writes element i, so that an output may lie where an input of its type
  // lies.
  bool elementwise = false;
  // Inputs that are named for the gradient alone: no kernel reads them.
  std::vector<std::size_t> unread_inputs = {};
  Precision precision = Precision::wide;
  std::vector<std::size_t> wide_inputs = {};  // stay in float32 where the op computes in 16 bits
};

class Op;

// The reference kernel of an op, for every dtype that the op allows: what all other kernels are compared with, and what
// a backend may run where it has no kernel of its own. It is simple and exact, allocates nothing, and its results do
// not depend on the number of threads. 16-bit floats are computed and added up in float, sums of float32 in double. It
// may be called from several threads at a time. `op` is the op that returned it.
using HostKernel = void (*)(const Op& op, const HostCall& call);

// An operation: an immutable value that says what is computed, and knows neither device nor memory. An op is a name, a
// shape rule, a gradient, a reference kernel and a named options struct.
class PLEXAURA_API Op {
 public:
  virtual ~Op();

  // Unique among ops: "matmul".
  virtual std::string_view name() const = 0;

  // Types of the outputs from types of the inputs: the only statement of the shape rule. Throws RuleError.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;

  // The gradient of each input, written with the public builder functions, so that it is graph and can be
  // differentiated again. An empty Node stands for zero. A gradient may have the broadcast shape of the
  // output: the walk sums it down. For an op with saved outputs this is the total derivative with respect to
  // the inputs. Default: throws UserError, "has no gradient".
  virtual std::vector<Node> vjp(const VjpRequest& request) const;

  // Null for an op that has none. Default: none; OpOf returns the op's compute().
  virtual HostKernel reference() const { return nullptr; }

  // Its options, from which printing, hashing and equality come. Default: none.
  virtual Description description() const { return {}; }

  virtual OpTraits traits() const { return {}; }
};

// An op with options: a struct that lists its fields as core/graph/fields.h says. Kernels read options().
template <class Options>
class OpWith : public Op {
 public:
  explicit OpWith(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }
  Description description() const final { return description_of(options_); }

 private:
  Options options_;
};

PLEXAURA_API bool operator==(const Op& a, const Op& b);  // same name, every option equal

[[noreturn]] PLEXAURA_API void throw_wrong_class(const Op& op);

// The op as its own class, for kernels that read its options; the op may come from another shared object. Throws
// UserError for an op of another class.
template <class T>
const T& op_cast(const Op& op) {
  if (const auto* own = dynamic_cast<const T*>(&op)) return *own;
  throw_wrong_class(op);
}

// The base of the op `Own`, which may have options and, as its reference kernel, a public member
//   void compute(const HostCall& call) const;
template <class Own, class Options = void>
class OpOf : public std::conditional_t<std::is_void_v<Options>, Op, OpWith<Options>> {
 public:
  using Base = std::conditional_t<std::is_void_v<Options>, Op, OpWith<Options>>;
  using Base::Base;

  // Throws UserError if the op's class is not `Own`.
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

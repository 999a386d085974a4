#pragma once

#include <cstdint>

#include "core/base/error.h"
#include "core/graph/op.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"

namespace plexaura {

// The base of an op of your own that computes each element y from one element x, such as an activation. The op `Own` has
// a name and two public members; it is floating, and y has the type and shape of x:
//
//   struct Softsign final : UnaryOpOf<Softsign> {
//     std::string_view name() const override { return "my_softsign"; }
//     double value(double x) const { return x / (1 + std::abs(x)); }
//     Node slope(const Node& x) const { return 1 / square(1 + abs(x)); }  // dy/dx
//   };
//   Node softsign(Operand x) { return apply(std::make_shared<Softsign>(), {x}); }
//
// A gradient of 0 stays 0 where the slope is infinite. Threads divide the elements. value() is computed in double and rounded to the dtype of x. A template `auto value(auto x) const` is computed in
// the dtype of x, and 16-bit floats in float.
template <class Own, class Options = void>
class UnaryOpOf : public OpOf<Own, Options> {
 public:
  using OpOf<Own, Options>::OpOf;

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 1) throw RuleError("takes one input");
    if (!is_floating(inputs[0].dtype)) throw RuleError("takes floating values; use cast()");
    return {inputs[0]};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {mul_no_nan(request.grad_outputs[0], own().slope(request.inputs[0]))};
  }

  void compute(const HostCall& call) const {
    portable::dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
      const T* const x = call.inputs[0].as<T>();
      T* const y = call.outputs[0].as<T>();
      if (y == nullptr) return;
      portable::parallel_pieces(call.inputs[0].elements(), cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          y[i] = T(own().value(static_cast<portable::Compute<T>>(x[i])));
      });
    });
  }

  OpTraits traits() const override { return {.elementwise = true}; }

 private:
  static constexpr std::int64_t cost = 8;  // of one element, in elementary operations

  const Own& own() const { return static_cast<const Own&>(*this); }
};

}  // namespace plexaura

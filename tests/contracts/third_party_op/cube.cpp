// An op as a third party would ship it: a shared object that links only the core library.

#include "tests/contracts/third_party_op/cube.h"

#include "core/graph/op.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"

namespace {

using namespace plexaura;
using third_party::CubeOptions;

// y = x^3 + offset.
struct Cube final : OpOf<Cube, CubeOptions> {
  using OpOf::OpOf;
  std::string_view name() const override { return "third_party_cube"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (!is_floating(inputs[0].dtype)) throw RuleError("takes floating values; use cast()");
    return {inputs[0]};
  }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {request.grad_outputs[0] * 3 * request.inputs[0] * request.inputs[0]};
  }
  void compute(const HostCall& call) const {
    portable::dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
        const auto x = static_cast<portable::Compute<T>>(call.inputs[0].as<T>()[i]);
        call.outputs[0].as<T>()[i] = T(x * x * x + static_cast<portable::Compute<T>>(options().offset));
      }
    });
  }
  OpTraits traits() const override { return {.elementwise = true}; }
};

}  // namespace

void third_party_cube(const Node& x, double offset, Node& y) {
  y = apply(std::make_shared<Cube>(CubeOptions{offset}), {x});
}

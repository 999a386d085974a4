// An op and its kernel as somebody else would ship them: a shared object that links the core alone.

#include "tests/contracts/third_party_op/cube.h"

#include "core/device/host_kernel.h"
#include "core/graph/op.h"
#include "core/ops/binary.h"

namespace {

using namespace plexaura;
using third_party::CubeOptions;

// y = x^3 + offset.
class Cube final : public OpWith<CubeOptions> {
 public:
  using OpWith::OpWith;
  std::string_view name() const override { return "third_party_cube"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (!is_floating(inputs[0].dtype)) throw RuleError("takes floating values; use cast()");
    return {inputs[0]};
  }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {request.grad_outputs[0] * 3 * request.inputs[0] * request.inputs[0]};
  }
  OpTraits traits() const override { return {.elementwise = true}; }
};

template <class T>
void cube(const HostCall& call, double offset) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    const T x = call.inputs[0].as<T>()[i];
    call.outputs[0].as<T>()[i] = x * x * x + static_cast<T>(offset);
  }
}

void run_cube(const HostCall& call) {
  const double offset = op_cast<Cube>(call.op).options().offset;
  if (call.inputs[0].dtype() == DType::float64)
    cube<double>(call, offset);
  else
    cube<float>(call, offset);
}

}  // namespace

void third_party_register() { register_host_kernel("third_party_cube", run_cube); }

void third_party_cube(const Node& x, double offset, Node& y) {
  y = apply(std::make_shared<Cube>(CubeOptions{offset}), {x});
}

#include "core/ops/binary.h"

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

using namespace portable;

// dst[i] = function(a[i * step_a], b[i * step_b]). Steps are mostly 0 or 1; for these the compiler makes
// loops with constant steps.
template <class T, class Result, class Function>
void run_of(const Function& function, const T* a, std::int64_t step_a, const T* b, std::int64_t step_b,
            Result* dst, std::int64_t length) {
  const auto loop = [&](auto of_a, auto of_b) {
    for (std::int64_t i = 0; i < length; ++i)
      dst[i] = Result(function(static_cast<Compute<T>>(a[i * of_a]), static_cast<Compute<T>>(b[i * of_b])));
  };
  constexpr std::integral_constant<std::int64_t, 0> none;
  constexpr std::integral_constant<std::int64_t, 1> one;
  if (step_a == 1 && step_b == 1)
    loop(one, one);
  else if (step_a == 1 && step_b == 0)
    loop(one, none);
  else if (step_a == 0 && step_b == 1)
    loop(none, one);
  else
    loop(step_a, step_b);
}

template <class T, class Result, class Function>
void broadcast_binary(const HostCall& call, const Function& function, std::int64_t cost) {
  const T* a = call.inputs[0].as<T>();
  const T* b = call.inputs[1].as<T>();
  Result* dst = call.outputs[0].as<Result>();
  const auto walk = broadcast_walk(call.outputs[0].shape(), call.inputs[0].shape(), call.inputs[1].shape());
  const auto [step_a, step_b] = walk.run_strides();
  parallel_pieces(walk.elements(), cost,
                  [&, step_a = step_a, step_b = step_b](std::int64_t begin, std::int64_t end) {
                    walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
                      run_of(function, a + offsets[0], step_a, b + offsets[1], step_b, dst + first, length);
                    });
                  });
}

const double* numbers_of(const Op& op) { return op_cast<FunctionOp>(op).options().values.data(); }

template <template <class, class> class Functor, std::int64_t cost>
void compute_numbers(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

template <template <class, class> class Functor, std::int64_t cost>
void compute_any(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, bool>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

template <template <class, class> class Functor, std::int64_t cost>
void compute_floats(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

constexpr FunctionKernel binary_kernels[] = {
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) {#name, compute_##dtypes<functors::Functor, cost>},
#include "core/ops/ops.def"
};

struct Operands {
  const Node& a;
  const Node& b;
  const Node& y;
};

// y = f(a, b), of one dtype, with broadcasting.
class BinaryOp final : public FunctionOp {
 public:
  using Vjp = std::function<std::vector<Node>(const Operands& operands, const Node& grad)>;
  BinaryOp(std::string_view name, Vjp vjp, bool floating, FunctionOptions options, Precision precision)
      : OpWith(std::move(options)),
        name_(name),
        vjp_(std::move(vjp)),
        floating_(floating),
        precision_(precision) {}

  std::string_view name() const override { return name_; }
  HostKernel reference() const override { return kernel_of(name_, binary_kernels); }
  OpTraits traits() const override { return {.elementwise = true, .precision = precision_}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 2);
    if (inputs[0].dtype == DType::boolean && inputs[1].dtype == DType::boolean)
      throw RuleError("is defined for numbers, not for bool; use cast()");
    if (floating_) require_floating(inputs[0]);
    return {broadcast_types(inputs[0], inputs[1])};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    return vjp_({request.inputs[0], request.inputs[1], request.outputs[0]}, request.grad_outputs[0]);
  }

 private:
  std::string_view name_;
  Vjp vjp_;
  bool floating_;  // not defined for integers
  Precision precision_;
};

// y = f(a, b) as bool.
class CompareOp final : public FunctionOp {
 public:
  explicit CompareOp(std::string_view name) : OpWith({}), name_(name) {}

  std::string_view name() const override { return name_; }
  HostKernel reference() const override { return kernel_of(name_, binary_kernels); }
  OpTraits traits() const override { return {.elementwise = true, .precision = Precision::follows}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 2);
    return {{DType::boolean, broadcast_types(inputs[0], inputs[1]).shape}};
  }

  std::vector<Node> vjp(const VjpRequest&) const override { return {Node(), Node()}; }

 private:
  std::string_view name_;
};

class Where final : public OpOf<Where> {
 public:
  std::string_view name() const override { return "where"; }
  OpTraits traits() const override { return {.elementwise = true, .precision = Precision::follows}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 3);
    if (inputs[0].dtype != DType::boolean)
      throw RuleError("the condition must be bool; make it with a comparison");
    const TensorType chosen = broadcast_types(inputs[1], inputs[2]);
    return {{chosen.dtype, broadcast(inputs[0].shape, chosen.shape)}};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& condition = request.inputs[0];
    const Node& grad = request.grad_outputs[0];
    return {Node(), plexaura::where(condition, grad, 0), plexaura::where(condition, 0, grad)};
  }

  void compute(const HostCall& call) const;
};

// The gradient of maximum and minimum for one operand. Equal operands get half of it each.
Node share_of_chosen(const Node& chosen, const Operands& of, const Node& grad) {
  return where(eq(of.a, of.b), 0.5 * grad, where(chosen, grad, 0));
}

Node binary(std::string_view name, BinaryOp::Vjp vjp, Operand a, Operand b, bool floating = false,
            FunctionOptions options = {}, Precision precision = Precision::follows) {
  return apply(std::make_shared<BinaryOp>(name, std::move(vjp), floating, std::move(options), precision),
               {a, b});
}

Node compare(std::string_view name, Operand a, Operand b) {
  return apply(std::make_shared<CompareOp>(name), {a, b});
}

}  // namespace

Node add(Operand a, Operand b) {
  return binary(
      "add",
      [](const Operands&, const Node& grad) -> std::vector<Node> {
        return {grad, grad};
      },
      a, b);
}

Node sub(Operand a, Operand b) {
  return binary(
      "sub",
      [](const Operands&, const Node& grad) -> std::vector<Node> {
        return {grad, -grad};
      },
      a, b);
}

Node mul(Operand a, Operand b) {
  return binary(
      "mul",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        return {grad * of.b, grad * of.a};
      },
      a, b);
}

Node div(Operand a, Operand b) {
  return binary(
      "div",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        const Node over_b = grad / of.b;
        return {over_b, -(over_b * of.y)};
      },
      a, b);
}

Node maximum(Operand a, Operand b) {
  return binary(
      "maximum",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        return {share_of_chosen(gt(of.a, of.b), of, grad), share_of_chosen(lt(of.a, of.b), of, grad)};
      },
      a, b);
}

Node minimum(Operand a, Operand b) {
  return binary(
      "minimum",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        return {share_of_chosen(lt(of.a, of.b), of, grad), share_of_chosen(gt(of.a, of.b), of, grad)};
      },
      a, b);
}

Node weighted_sum(Operand a, double weight_a, Operand b, double weight_b) {
  return binary("weighted_sum",
                [=](const Operands&, const Node& grad) -> std::vector<Node> {
                  return {weight_a * grad, weight_b * grad};
                },
                a, b, true, {{"weight_a", "weight_b"}, {weight_a, weight_b}});
}

Node pow(Operand a, Operand b) {
  return binary(
      "pow",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        const Node base = where(le(of.b, 0), where(eq(of.a, 0), 1, of.a), of.a);
        return {grad * mul_no_nan(of.b, pow_log(of.a, of.b - 1, 0)), grad * pow_log(base, of.b, 1)};
      },
      a, b, true, {}, Precision::wide);
}

Node pow_log(Operand a, Operand b, int order) {
  return binary(
      "pow_log",
      [order](const Operands& of, const Node& grad) -> std::vector<Node> {
        Node slope = mul_no_nan(of.b, pow_log(of.a, of.b - 1, order));
        if (order > 0) slope = slope + order * pow_log(of.a, of.b - 1, order - 1);
        return {mul_no_nan(grad, slope), mul_no_nan(grad, pow_log(of.a, of.b, order + 1))};
      },
      a, b, true, {{"order"}, {static_cast<double>(order)}}, Precision::wide);
}

Node mul_no_nan(Operand a, Operand b) {
  return binary(
      "mul_no_nan",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        return {mul_no_nan(grad, of.b), mul_no_nan(of.a, grad)};
      },
      a, b, true);
}

Node sigmoid_cross_entropy(Operand logits, Operand targets) {
  return binary(
      "sigmoid_cross_entropy",
      [](const Operands& of, const Node& grad) -> std::vector<Node> {
        return {mul_no_nan(grad, sigmoid(of.a) - of.b), -mul_no_nan(grad, of.a)};
      },
      logits, targets, true, {}, Precision::wide);
}

Node eq(Operand a, Operand b) { return compare("eq", a, b); }
Node ne(Operand a, Operand b) { return compare("ne", a, b); }
Node lt(Operand a, Operand b) { return compare("lt", a, b); }
Node le(Operand a, Operand b) { return compare("le", a, b); }
Node gt(Operand a, Operand b) { return compare("gt", a, b); }
Node ge(Operand a, Operand b) { return compare("ge", a, b); }

Node where(Operand condition, Operand a, Operand b) {
  const Node flags = condition.node();
  if (a.is_number() && b.is_number()) return apply(std::make_shared<Where>(), {condition, a, b});
  const Node like = a.is_number() ? b.node() : a.node();
  return apply(std::make_shared<Where>(),
               {Operand(flags, condition.where()), a.node_like(like), b.node_like(like)});
}

void Where::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const auto walk =
      broadcast_walk(result.shape(), call.inputs[0].shape(), call.inputs[1].shape(), call.inputs[2].shape());
  const auto steps = walk.run_strides();
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool* condition = call.inputs[0].as<bool>();
    const T* a = call.inputs[1].as<T>();
    const T* b = call.inputs[2].as<T>();
    T* dst = result.as<T>();
    parallel_pieces(walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i)
          dst[first + i] = condition[offsets[0] + i * steps[0]] ? a[offsets[1] + i * steps[1]]
                                                                : b[offsets[2] + i * steps[2]];
      });
    });
  });
}

}  // namespace plexaura

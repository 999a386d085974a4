#include "dev/compare_ops_parts/op_builders.h"
#include "plexaura/core.h"

namespace plexaura {

namespace {

using Unary = Node (*)(Operand);
using Binary = Node (*)(Operand, Operand);

void add_unary(OpBuilders& builders) {
  const std::map<std::string, Unary> functions{{"neg", neg},
                                               {"abs", abs},
                                               {"exp", exp},
                                               {"log", log},
                                               {"sqrt", sqrt},
                                               {"square", square},
                                               {"sigmoid", sigmoid},
                                               {"tanh", tanh},
                                               {"relu", relu},
                                               {"softplus", softplus},
                                               {"erf", erf},
                                               {"cube", cube},
                                               {"rsqrt", rsqrt},
                                               {"reciprocal", reciprocal},
                                               {"exp2", exp2},
                                               {"expm1", expm1},
                                               {"log2", log2},
                                               {"log10", log10},
                                               {"log1p", log1p},
                                               {"sign", sign},
                                               {"ceil", ceil},
                                               {"floor", floor},
                                               {"round", round},
                                               {"trunc", trunc},
                                               {"stop_gradient", stop_gradient},
                                               {"log_sigmoid", log_sigmoid},
                                               {"softsign", softsign},
                                               {"silu", silu},
                                               {"mish", mish},
                                               {"selu", selu},
                                               {"relu6", relu6},
                                               {"hard_sigmoid", hard_sigmoid},
                                               {"hard_swish", hard_swish},
                                               {"sin", sin},
                                               {"cos", cos},
                                               {"tan", tan},
                                               {"asin", asin},
                                               {"acos", acos},
                                               {"atan", atan},
                                               {"sinh", sinh},
                                               {"cosh", cosh},
                                               {"asinh", asinh},
                                               {"acosh", acosh},
                                               {"atanh", atanh},
                                               {"erfc", erfc},
                                               {"erfinv", erfinv},
                                               {"lgamma", lgamma},
                                               {"digamma", digamma},
                                               {"logical_not", logical_not},
                                               {"is_nan", is_nan},
                                               {"is_finite", is_finite},
                                               {"bitwise_not", bitwise_not}};
  for (const auto& [name, function] : functions)
    builders[name] = [function = function](const OpCall& call) { return std::vector{function(call[0])}; };
}

void add_binary(OpBuilders& builders) {
  const std::map<std::string, Binary> functions{{"add", add},
                                                {"sub", sub},
                                                {"mul", mul},
                                                {"div", div},
                                                {"floor_div", floor_div},
                                                {"mod", mod},
                                                {"pow", pow},
                                                {"mul_no_nan", mul_no_nan},
                                                {"maximum", maximum},
                                                {"minimum", minimum},
                                                {"sigmoid_cross_entropy", sigmoid_cross_entropy},
                                                {"hypot", hypot},
                                                {"atan2", atan2},
                                                {"eq", eq},
                                                {"ne", ne},
                                                {"lt", lt},
                                                {"le", le},
                                                {"gt", gt},
                                                {"ge", ge},
                                                {"logical_and", logical_and},
                                                {"logical_or", logical_or},
                                                {"logical_xor", logical_xor},
                                                {"bitwise_and", bitwise_and},
                                                {"bitwise_or", bitwise_or},
                                                {"bitwise_xor", bitwise_xor},
                                                {"left_shift", left_shift},
                                                {"right_shift", right_shift},
                                                {"prelu", prelu}};
  for (const auto& [name, function] : functions)
    builders[name] = [function = function](const OpCall& call) {
      return std::vector{function(call[0], call[1])};
    };
}

void add_with_options(OpBuilders& builders) {
  builders["gelu"] = [](const OpCall& call) {
    return std::vector{gelu(call[0], {.tanh = call.flag("tanh")})};
  };
  builders["leaky_relu"] = [](const OpCall& call) {
    return std::vector{leaky_relu(call[0], call.number("slope", 0.01))};
  };
  builders["clip"] = [](const OpCall& call) {
    return std::vector{clip(call[0], call.number("low", 0), call.number("high", 0))};
  };
  builders["hard_tanh"] = [](const OpCall& call) {
    return std::vector{hard_tanh(call[0], call.number("low", -1), call.number("high", 1))};
  };
  builders["cast"] = [](const OpCall& call) { return std::vector{cast(call[0], call.dtype())}; };
  builders["elu"] = [](const OpCall& call) { return std::vector{elu(call[0], call.number("alpha", 1))}; };
  builders["celu"] = [](const OpCall& call) { return std::vector{celu(call[0], call.number("alpha", 1))}; };
  builders["polygamma"] = [](const OpCall& call) {
    return std::vector{polygamma(static_cast<int>(call.integer("order")), call[0])};
  };
  builders["pow_log"] = [](const OpCall& call) {
    return std::vector{pow_log(call[0], call[1], static_cast<int>(call.integer("order")))};
  };
  builders["pow_number"] = [](const OpCall& call) {
    return std::vector{pow(call[0], call.number("exponent", 2))};
  };
  builders["weighted_sum"] = [](const OpCall& call) {
    return std::vector{weighted_sum(call[0], call.number("a", 1), call[1], call.number("b", 1))};
  };
  builders["where"] = [](const OpCall& call) { return std::vector{where(call[0], call[1], call[2])}; };
  builders["masked_fill"] = [](const OpCall& call) {
    return std::vector{masked_fill(call[0], call[1], call.number("value", 0))};
  };
  builders["normalise_image"] = [](const OpCall& call) {
    return std::vector{normalise_image(
        call[0], {.scale = {.mean = call.numbers("mean"), .stddev = call.numbers("deviation")},
                  .dtype = call.dtype()})};
  };
}

}  // namespace

void add_elementwise_builders(OpBuilders& builders) {
  add_unary(builders);
  add_binary(builders);
  add_with_options(builders);
}

}  // namespace plexaura

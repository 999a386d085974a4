#include "dev/compare_ops_parts/op_builders.h"
#include "plexaura/core.h"

namespace plexaura {

namespace {

using Reducer = Node (*)(Operand, ReduceOptions);

std::vector<Node> both(const ValuesAndIndices& found) { return {found.values, found.indices}; }

void add_reductions(OpBuilders& builders) {
  const std::map<std::string, Reducer> reducers{{"sum", sum}, {"mean", mean}, {"max", max},
                                                {"min", min}, {"prod", prod}, {"logsumexp", logsumexp},
                                                {"any", any}, {"all", all}};
  for (const auto& [name, reducer] : reducers)
    builders[name] = [reducer = reducer](const OpCall& call) {
      return std::vector{
          reducer(call[0], {.axes = call.integers("axes"), .keepdims = call.flag("keepdims")})};
    };
  const auto variance = [](const OpCall& call) {
    return VarianceOptions{.axes = call.integers("axes"),
                           .keepdims = call.flag("keepdims"),
                           .correction = call.number("correction", 1)};
  };
  builders["var"] = [=](const OpCall& call) { return std::vector{var(call[0], variance(call))}; };
  builders["std_dev"] = [=](const OpCall& call) { return std::vector{std_dev(call[0], variance(call))}; };
  builders["norm"] = [](const OpCall& call) {
    return std::vector{
        norm(call[0],
             {.p = call.number("p", 2), .axes = call.integers("axes"), .keepdims = call.flag("keepdims")})};
  };
  builders["argmax"] = [](const OpCall& call) {
    return std::vector{argmax(call[0], call.integer("axis"), call.flag("keepdims"))};
  };
  builders["argmin"] = [](const OpCall& call) {
    return std::vector{argmin(call[0], call.integer("axis"), call.flag("keepdims"))};
  };
  builders["sum_to"] = [](const OpCall& call) {
    return std::vector{sum_to(call[0], Shape(call.integers("shape")))};
  };
}

void add_running(OpBuilders& builders) {
  builders["cumsum"] = [](const OpCall& call) {
    return std::vector{cumsum(call[0], {.axis = call.integer("axis"),
                                        .exclusive = call.flag("exclusive"),
                                        .reverse = call.flag("reverse")})};
  };
  builders["cumprod"] = [](const OpCall& call) {
    return std::vector{cumprod(call[0], call.integer("axis"))};
  };
  builders["linear_recurrence"] = [](const OpCall& call) {
    return std::vector{
        linear_recurrence(call[0], call[1], {.axis = call.integer("axis"), .reverse = call.flag("reverse")})};
  };
  builders["cummax"] = [](const OpCall& call) { return both(cummax(call[0], call.integer("axis"))); };
  builders["cummin"] = [](const OpCall& call) { return both(cummin(call[0], call.integer("axis"))); };
}

void add_orders(OpBuilders& builders) {
  builders["sort"] = [](const OpCall& call) {
    return both(sort(call[0], call.integer("axis", -1), call.flag("descending")));
  };
  builders["argsort"] = [](const OpCall& call) {
    return std::vector{argsort(call[0], call.integer("axis", -1), call.flag("descending"))};
  };
  builders["topk"] = [](const OpCall& call) {
    return both(topk(call[0], call.integer("k"), call.integer("axis", -1), !call.flag("smallest")));
  };
  builders["kthvalue"] = [](const OpCall& call) {
    return both(kthvalue(call[0], call.integer("k"), call.integer("axis", -1), call.flag("keepdims")));
  };
  builders["median"] = [](const OpCall& call) {
    return call.has("axis") ? both(median(call[0], call.integer("axis"), call.flag("keepdims")))
                            : std::vector{median(call[0])};
  };
  builders["quantile"] = [](const OpCall& call) {
    const std::map<std::string, Interpolation> kinds{{"linear", Interpolation::linear},
                                                     {"lower", Interpolation::lower},
                                                     {"higher", Interpolation::higher},
                                                     {"midpoint", Interpolation::midpoint},
                                                     {"nearest", Interpolation::nearest}};
    return std::vector{quantile(call[0], call.number("q", 0.5),
                                {.axis = call.optional_integer("axis"),
                                 .keepdims = call.flag("keepdims"),
                                 .interpolation = kinds.at(call.text("interpolation"))})};
  };
  builders["searchsorted"] = [](const OpCall& call) {
    return std::vector{searchsorted(call[0], call[1], call.flag("right"))};
  };
}

void add_products(OpBuilders& builders) {
  builders["matmul"] = [](const OpCall& call) {
    return std::vector{
        matmul(call[0], call[1],
               {.transpose_a = call.flag("transpose_a"), .transpose_b = call.flag("transpose_b")})};
  };
  builders["dot"] = [](const OpCall& call) { return std::vector{dot(call[0], call[1])}; };
  builders["outer"] = [](const OpCall& call) { return std::vector{outer(call[0], call[1])}; };
  builders["einsum"] = [](const OpCall& call) {
    return std::vector{einsum(call.text("equation"), {call.inputs.begin(), call.inputs.end()})};
  };
  builders["tensordot"] = [](const OpCall& call) {
    return std::vector{tensordot(call[0], call[1], call.integers("axes_a"), call.integers("axes_b"))};
  };
}

void add_linear_algebra(OpBuilders& builders) {
  builders["solve"] = [](const OpCall& call) { return std::vector{solve(call[0], call[1])}; };
  builders["inverse"] = [](const OpCall& call) { return std::vector{inverse(call[0])}; };
  builders["det"] = [](const OpCall& call) { return std::vector{det(call[0])}; };
  builders["logdet"] = [](const OpCall& call) { return std::vector{logdet(call[0])}; };
  builders["cholesky"] = [](const OpCall& call) { return std::vector{cholesky(call[0])}; };
  builders["triangular_solve"] = [](const OpCall& call) {
    return std::vector{triangular_solve(call[0], call[1],
                                        {.upper = call.flag("upper"),
                                         .transpose = call.flag("transpose"),
                                         .unit_diagonal = call.flag("unit_diagonal")})};
  };
}

}  // namespace

void add_reduction_builders(OpBuilders& builders) {
  add_reductions(builders);
  add_running(builders);
  add_orders(builders);
  add_products(builders);
  add_linear_algebra(builders);
}

}  // namespace plexaura

#include "core/ops/elementwise.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "tests/support/cases.h"

namespace plexaura::testing::elementwise_test {

namespace {

// The op of a case, and the types of its inputs. No op, if the case needs none for this dtype.
struct Use {
  std::shared_ptr<const Op> op;
  std::vector<TensorType> inputs;
};

Use use_in(const OpCase& op_case, DType dtype) {
  Graph graph;
  op_case.build(graph, add_inputs(graph, op_case, dtype));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    if (record.op->name() != op_case.op) continue;
    Use use{record.op, {}};
    for (const Value input : record.inputs) use.inputs.push_back(graph.type(input));
    return use;
  }
  return {};
}

constexpr std::string_view functions[] = {
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) #name,
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) #name,
#include "core/ops/ops.def"
};

}  // namespace

// Kernels read the options of these ops through that class.
TEST_CASE("what ops.def says is a function is a FunctionOp") {
  for (const std::string_view op : functions) {
    const auto found = std::ranges::find(all_cases(), op, [](const OpCase& op_case) { return op_case.op; });
    REQUIRE(found != all_cases().end());
    CHECK_MESSAGE(dynamic_cast<const FunctionOp*>(use_in(*found, DType::float64).op.get()) != nullptr, op);
  }
}

// The step ops of optimizers also accept a loss scale, as one more input.
TEST_CASE("every op but concat refuses an input too many") {
  for (const OpCase& op_case : all_cases()) {
    const bool takes_more = op_case.op.ends_with("_step") && !op_case.name.ends_with("loss scale");
    if (op_case.op == "concat" || takes_more) continue;
    Use use = use_in(op_case, DType::float64);
    if (!use.op) use = use_in(op_case, DType::float32);
    REQUIRE_MESSAGE(!use.inputs.empty(), op_case.name);
    use.inputs.push_back(use.inputs.back());
    CHECK_THROWS_AS_MESSAGE(use.op->infer(use.inputs), RuleError, op_case.name);
  }
}

}  // namespace plexaura::testing::elementwise_test

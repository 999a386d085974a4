// Exports what the cases of all ops build, and imports it again.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

#include "onnx/exporter.h"
#include "onnx/runner.h"
#include "onnx/stored_data.h"

#include "core/base/error.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"

namespace plexaura::testing::every_op_test {

namespace {

// The ops of ops.def that ONNX does not have, or whose results would be less exact. Most belong to gradients.
const std::set<std::string> not_in_onnx{"adam_step",
                                        "argcummax",
                                        "atan2",
                                        "avg_pool2d_grad",
                                        "avg_pool3d_grad",
                                        "cholesky",
                                        "conv2d_weight_grad",
                                        "conv3d_weight_grad",
                                        "dropout_grad",
                                        "erfc",
                                        "erfinv",
                                        "fold",
                                        "gather_grad",
                                        "hypot",
                                        "lgamma",
                                        "linear_recurrence",
                                        "lu_factors",
                                        "lu_solve",
                                        "max_pool2d_gather",
                                        "max_pool2d_grad",
                                        "max_pool3d_gather",
                                        "max_pool3d_grad",
                                        "moments_grad",
                                        "normal",
                                        "normalise_grad",
                                        "polygamma",
                                        "pow_log",
                                        "rms_step",
                                        "searchsorted",
                                        "sgd_step",
                                        "sigmoid_cross_entropy",
                                        "slice_grad",
                                        "softmax_cross_entropy_grad",
                                        "top_k_correct",
                                        "triangular_solve",
                                        "uniform"};

struct Built {
  Graph graph{Mode::inference};
  std::vector<Node> outputs;
  std::vector<Tensor> inputs;
};

void build(const OpCase& op_case, DType dtype, Built& built) {
  Random random(1);
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const CaseInput& input = op_case.inputs[i];
    const TensorType type{input.dtype.value_or(dtype), input.shape};
    built.inputs.push_back(make(type, input.values, random));
    nodes.push_back(built.graph.input(fmt::format("x{}", i), type));
  }
  built.outputs = op_case.build(built.graph, nodes);
}

// Returns the largest distance of two elements, relative to the largest finite element or 1.
double relative_distance(const Tensor& found, const Tensor& expected) {
  double scale = 1;
  for (const double value : expected.to_doubles())
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  return onnx::largest_distance(found, expected) / scale;
}

// Exports the outputs of a case, and returns what the imported file computes.
std::vector<Tensor> after_round_trip(const Built& built) {
  std::vector<onnx::ExportedOutput> outputs;
  for (std::size_t i = 0; i < built.outputs.size(); ++i)
    outputs.push_back({fmt::format("y{}", i), built.outputs[i]});
  const ParameterStore none(std::vector<ParameterSpec>{});
  onnx::FileModel model(onnx::export_graph(outputs, none), "case.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, test_backend());
  std::map<std::string, Tensor> inputs;
  for (const onnx::InputFacts& input : model.inputs())
    inputs[input.name] = built.inputs.at(std::stoul(input.name.substr(1)));
  return run(inputs);
}

bool lacks_counterpart(const std::string& error) {
  return error.starts_with("these ops have no counterpart");
}

}  // namespace

TEST_CASE("what is exported to ONNX and imported again computes the same, for all cases of all ops") {
  std::set<std::string> exported;
  std::set<std::string> refused;
  for (const OpCase& op_case : all_cases()) {
    const DType dtype =
        std::ranges::count(op_case.dtypes, DType::float32) > 0 ? DType::float32 : op_case.dtypes[0];
    INFO(op_case.name);
    Built built;
    build(op_case, dtype, built);
    try {
      const std::vector<Tensor> found = after_round_trip(built);
      const std::vector<Tensor> expected = Runner(built.graph, built.outputs, test_backend())(built.inputs);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].type() == expected[i].type());
        if (found[i].type() == expected[i].type()) CHECK(relative_distance(found[i], expected[i]) <= 1e-6);
      }
      exported.insert(op_case.op);
    } catch (const UserError& error) {
      CHECK_MESSAGE(lacks_counterpart(error.what()), error.what());
      refused.insert(op_case.op);
    }
  }
  for (const std::string& op : exported) refused.erase(op);
  for (const std::string& op : refused)
    CHECK_MESSAGE(not_in_onnx.contains(op), fmt::format("{} was not exported", op));
  for (const std::string& op : not_in_onnx)
    CHECK_MESSAGE(refused.contains(op), fmt::format("{} was exported; take it off the list", op));
  MESSAGE(fmt::format("{} ops exported, {} refused", exported.size(), refused.size()));
}

}  // namespace plexaura::testing::every_op_test

#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "testing/check_gradients.h"
#include "testing/values.h"

namespace plexaura::testing {

struct CaseInput {
  Shape shape;
  Values values = between(-1, 1);
  std::optional<DType> dtype = {};  // nothing: the floating type under test
};

// What the outputs of a case must be, from the values of its inputs, all float64 whatever their type in the
// graph. Written from the op's definition with plain loops and std:: functions: it shares no code with any
// kernel.
using Expected = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

// How far a result may be from what is expected, as a fraction of the largest element of that output. The
// default allows for the rounding of inputs, of the result and of a short sum: some units in the last place
// of the type.
struct Tolerances {
  double float64 = 1e-12;
  double float32 = 2e-6;
  double bfloat16 = 3e-2;
  double float16 = 4e-3;

  double of(DType dtype) const;
};

// One description of an op at work. It drives the comparison of results with what is expected and of
// gradients with the portable kernels in float64, in every dtype on every backend, and the check of gradients
// against differences.
struct OpCase {
  std::string name;  // "conv2d, stride 2 and three groups"
  std::string op;    // its line in ops.def
  BuildFunction build;
  std::vector<CaseInput> inputs;
  Expected expected;

  bool differentiable = true;
  bool second_order = true;
  std::vector<DType> dtypes = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
  Tolerances tolerances = {};
  double gradient_slack = 4;  // gradients may be so many times further off than results
  StepBlock block = telling_step_block;
};

// Operands that an op must refuse, and words that must stand in what it says: the rule and what to do.
struct WrongCase {
  std::string name;
  std::string op;
  std::function<void(Graph& graph)> build;
  std::vector<std::string> words;
};

// What was checked, and in words what was wrong; empty where nothing was.
struct CaseReport {
  std::int64_t comparisons = 0;
  std::string failures;

  bool passed() const { return failures.empty(); }
  void merge(const CaseReport& other);
};

// The functions below keep nothing of a call. One thread at a time uses a backend.

// Results of a backend against what is expected of the same (rounded) inputs. Throws UserError for a case
// that expects nothing.
CaseReport check_forward(const OpCase& op_case, DType dtype, Backend& backend);

// Gradients of a backend, under a random cotangent, against the oracle, which computes in float64 from the
// same (rounded) inputs.
CaseReport check_backward(const OpCase& op_case, DType dtype, Backend& backend, Backend& oracle);

// Whether padding is zero in every value of the op and of its gradient.
CaseReport check_padding(const OpCase& op_case, DType dtype, Backend& backend);

// The oracle's gradients against differences.
GradientReport check_gradients(const OpCase& op_case, Backend& oracle);

// What no backend changes: the oracle's results, its gradients against differences, and what the op says of
// itself (testing/traits.h).
CaseReport check_op(const OpCase& op_case, Backend& oracle);

// What a backend computes: results, gradients and padding, in every dtype of the case.
CaseReport check_backend(const OpCase& op_case, Backend& backend, Backend& oracle);

// Both.
CaseReport check(const OpCase& op_case, Backend& backend, Backend& oracle);

// The op throws UserError that names the place, itself and the words.
CaseReport check(const WrongCase& wrong);

}  // namespace plexaura::testing

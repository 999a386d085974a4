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
  std::optional<DType> dtype = {};  // empty: the floating dtype under test
};

// Computes the expected outputs of a case from the values of its inputs. All values are float64, whatever
// their dtype in the graph. It is written from the op's definition with plain loops and std:: functions, and
// shares no code with any kernel.
using Expected = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

// The largest allowed error of a result, as a fraction of the largest element of that output. The defaults
// allow for the rounding of inputs, of the result and of a short sum: some units in the last place of the
// dtype.
struct Tolerances {
  double float64 = 1e-12;
  double float32 = 2e-6;
  double bfloat16 = 3e-2;
  double float16 = 4e-3;

  double of(DType dtype) const;
};

// Describes one use of an op. The functions below check in every dtype on every backend: results against
// `expected`, gradients against the portable kernels in float64, and the padding of values. They also check
// gradients against differences, and the op's traits.
struct OpCase {
  std::string name;  // such as "conv2d, stride 2 and three groups"
  std::string op;    // the name of the op in ops.def
  BuildFunction build;
  std::vector<CaseInput> inputs;
  Expected expected;

  bool differentiable = true;
  bool second_order = true;
  std::vector<DType> dtypes = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
  Tolerances tolerances = {};
  double gradient_slack = 4;  // factor from the tolerance of results to that of gradients
  StepBlock block = telling_step_block;
};

// Operands that an op must refuse, and words that its error must contain: the rule, and what to do.
struct WrongCase {
  std::string name;
  std::string op;
  std::function<void(Graph& graph)> build;
  std::vector<std::string> words;
};

// The number of comparisons, and a text of all failures, which is empty if there are none.
struct CaseReport {
  std::int64_t comparisons = 0;
  std::string failures;

  bool passed() const { return failures.empty(); }
  void merge(const CaseReport& other);
};

// The functions below keep no state between calls. Only one thread at a time may use a backend.

// Compares the results of a backend with what the case expects of the same (rounded) inputs. Throws UserError
// if the case has no `expected`.
CaseReport check_forward(const OpCase& op_case, DType dtype, Backend& backend);

// Compares the gradients of a backend, for a random cotangent, with those of the oracle, a backend that
// computes in float64 from the same (rounded) inputs.
CaseReport check_backward(const OpCase& op_case, DType dtype, Backend& backend, Backend& oracle);

// Checks that the padding of every value of the op and of its gradient is zero.
CaseReport check_padding(const OpCase& op_case, DType dtype, Backend& backend);

// Compares the oracle's gradients with differences.
GradientReport check_gradients(const OpCase& op_case, Backend& oracle);

// Adds the inputs of a case to a graph. Inputs without a dtype of their own get `dtype`.
std::vector<Node> add_inputs(Graph& graph, const OpCase& op_case, DType dtype);

// Runs the checks that do not depend on a backend: the oracle's results, its gradients against differences,
// and the op's traits (testing/traits.h).
CaseReport check_op(const OpCase& op_case, Backend& oracle);

// Checks what a backend computes: results, gradients and padding, in one dtype or in every dtype of the case.
CaseReport check_backend(const OpCase& op_case, DType dtype, Backend& backend, Backend& oracle);
CaseReport check_backend(const OpCase& op_case, Backend& backend, Backend& oracle);

// Runs check_op() and check_backend().
CaseReport check(const OpCase& op_case, Backend& backend, Backend& oracle);

// Checks that the op throws a UserError that contains its source line, its name and the words of the case.
CaseReport check(const WrongCase& wrong);

}  // namespace plexaura::testing

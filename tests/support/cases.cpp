#include "tests/support/cases.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/device/forwarding_backend.h"
#include "tests/support/backend.h"
#include "tests/support/layout_backend.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing {

namespace {

std::vector<OpCase>& known_cases() {
  static std::vector<OpCase> cases;
  return cases;
}

std::vector<WrongCase>& known_wrong_cases() {
  static std::vector<WrongCase> cases;
  return cases;
}

// Returns true if the op accepts operands of this shape in place of those of the case, and its result has the
// same shape.
bool takes(const OpCase& op_case, const Shape& shape) {
  Graph graph;
  std::vector<Node> inputs;
  for (const CaseInput& input : op_case.inputs)
    inputs.push_back(
        graph.input(fmt::format("{}", inputs.size()), {input.dtype.value_or(op_case.dtypes.front()), shape}));
  try {
    return std::ranges::all_of(op_case.build(graph, inputs),
                               [&](const Node& output) { return output.shape() == shape; });
  } catch (const UserError&) {
    return false;
  }
}

// Returns the dtype that is checked where one suffices.
DType one_dtype(const OpCase& op_case) {
  const bool has_float32 = std::ranges::count(op_case.dtypes, DType::float32) > 0;
  return has_float32 ? DType::float32 : op_case.dtypes.front();
}

// Returns variants of a case of an elementwise op, with images of 1, 3 and 17 channels.
std::vector<OpCase> with_channels(const OpCase& op_case) {
  std::vector<OpCase> variants;
  const auto same_shape = [&](const CaseInput& input) { return input.shape == op_case.inputs[0].shape; };
  if (op_case.inputs.empty() || op_case.inputs[0].shape != Shape{3, 5} ||
      !std::ranges::all_of(op_case.inputs, same_shape))
    return variants;
  for (const std::int64_t channels : {1, 3, 17}) {
    const Shape shape{2, channels, 3, 2};
    if (!takes(op_case, shape)) continue;
    OpCase& variant = variants.emplace_back(op_case);
    variant.name += fmt::format(", {} channels", channels);
    // Which elements a loop computes does not depend on the dtype. 17 channels have a whole block and a part of one.
    if (channels < 17) variant.dtypes = {one_dtype(op_case)};
    for (CaseInput& input : variant.inputs) input.shape = shape;
  }
  return variants;
}

void expect(const CaseReport& report) {
  CHECK_MESSAGE(report.passed(), report.failures);
  CHECK(report.comparisons > 0);
}

// Returns the case as the test backend has to be checked. Other tests check the kernels of some backends in every
// dtype: the far device has the portable kernels, and the CPU with two threads has those of the CPU with one. How
// threads divide the work depends on the size of elements.
OpCase as_checked(OpCase op_case) {
  const std::string name = test_backend().info().name;
  if (name == "far") op_case.dtypes = {one_dtype(op_case)};
  if (name == "cpu" && !is_default_backend())
    std::erase_if(op_case.dtypes, [&](DType dtype) {
      return dtype != one_dtype(op_case) && dtype != DType::float64 && dtype != DType::bfloat16;
    });
  return op_case;
}

CaseReport check_values(const OpCase& op_case, DType dtype, Backend& backend) {
  CaseReport report = check_forward(op_case, dtype, backend);
  if (op_case.differentiable) report.merge(check_backward(op_case, dtype, backend, oracle()));
  return report;
}

// Checks results and gradients in every dtype, and padding in one: values in row-major order have none.
void check_in_dtypes(const OpCase& op_case) {
  CaseReport report = check_padding(op_case, one_dtype(op_case), test_backend());
  for (const DType dtype : op_case.dtypes) report.merge(check_values(op_case, dtype, test_backend()));
  expect(report);
}

// Checks results, gradients and padding with neighbours whose values are in blocks of channels, or channels last. If
// no kernel takes such a layout, the programs are those without it, and gradients and other dtypes add nothing. float16
// is left out, because its elements lie where those of bfloat16 lie.
void check_in_layouts(const OpCase& op_case) {
  const DType first = one_dtype(op_case);
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(test_backend(), layout_of);
    CaseReport report = check_forward(op_case, first, backend);
    report.merge(check_padding(op_case, first, backend));
    if (backend.was_used() && op_case.differentiable)
      report.merge(check_backward(op_case, first, backend, oracle()));
    for (const DType dtype : op_case.dtypes)
      if (backend.was_used() && dtype != first && dtype != DType::float16)
        report.merge(check_backend(op_case, dtype, backend, oracle()));
    expect(report);
  }
}

// The test backend, but for each region only the kernel at one place of the list that it offers. If the list
// is shorter, all of its kernels.
class OneKernel final : public ForwardingBackend {
 public:
  explicit OneKernel(std::size_t place) : ForwardingBackend(test_backend()), place_(place) {}

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    if (info().host_memory) std::erase_if(candidates, [](const Candidate& of) { return !of.has_estimate(); });
    if (candidates.size() <= place_) return candidates;
    found_ = true;
    candidates[place_].seconds = 0;
    return {candidates[place_]};
  }

  bool found() const { return found_; }

 private:
  std::size_t place_;
  mutable bool found_ = false;  // a region has a kernel at this place
};

}  // namespace

Cases::Cases(std::vector<OpCase> given) : cases(std::move(given)) {
  known_cases().insert(known_cases().end(), cases.begin(), cases.end());
}

WrongCases::WrongCases(std::vector<WrongCase> given) : cases(std::move(given)) {
  known_wrong_cases().insert(known_wrong_cases().end(), cases.begin(), cases.end());
}

const std::vector<OpCase>& all_cases() { return known_cases(); }
const std::vector<WrongCase>& all_wrong_cases() { return known_wrong_cases(); }

void check_all(const Cases& cases) {
  // The far device chooses layouts itself, and the portable kernels know only row-major order.
  const std::string backend = test_backend().info().name;
  const bool takes_layouts = backend != "far" && backend != "portable";
  for (const OpCase& given : cases.cases) {
    CAPTURE(given.name);
    const OpCase op_case = as_checked(given);
    // Checks the reference kernels once, with the default backend. The address sanitizer leaves this out,
    // because it is slow and check_in_dtypes() runs these kernels anyway.
    if (is_default_backend() && !address_sanitized) expect(check_op(op_case, oracle()));
    check_in_dtypes(op_case);
    if (!takes_layouts) continue;
    check_in_layouts(op_case);
    for (const OpCase& variant : with_channels(op_case)) check_in_layouts(variant);
  }
}

void check_other_kernels(const Cases& cases) {
  for (const OpCase& op_case : cases.cases)
    for (const DType dtype : as_checked(op_case).dtypes) {
      bool found = true;
      for (std::size_t place = 1; found; ++place) {
        CAPTURE(op_case.name);
        CAPTURE(place);
        OneKernel backend(place);
        const CaseReport report = check_forward(op_case, dtype, backend);
        CHECK_MESSAGE(report.passed(), report.failures);
        found = backend.found();
      }
    }
}

void check_all(const WrongCases& cases) {
  for (const WrongCase& wrong : cases.cases) {
    const CaseReport report = check(wrong);
    CHECK_MESSAGE(report.passed(), report.failures);
  }
}

std::shared_ptr<const Op> op_in(const OpCase& op_case, DType dtype) {
  Graph graph;
  op_case.build(graph, add_inputs(graph, op_case, dtype));
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == op_case.op) return graph.record(id).op;
  return nullptr;
}

Node output_of(const Node& node, std::uint32_t output) { return {node.graph(), {node.id(), output}}; }

}  // namespace plexaura::testing

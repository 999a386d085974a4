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
    for (CaseInput& input : variant.inputs) input.shape = shape;
  }
  return variants;
}

void expect(const CaseReport& report) {
  CHECK_MESSAGE(report.passed(), report.failures);
  CHECK(report.comparisons > 0);
}

// Checks results, gradients and padding with neighbours whose values are in blocks of channels, or channels
// last.
void check_in_layouts(const OpCase& op_case) {
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(test_backend(), layout_of);
    expect(check_backend(op_case, backend, oracle()));
  }
}

// Checks a case on the far device, whose kernels are the portable ones. A test on the host checks these in every
// type and layout, so one type suffices here.
void check_far(OpCase op_case) {
  const bool single = std::ranges::count(op_case.dtypes, DType::float32) > 0;
  op_case.dtypes = {single ? DType::float32 : op_case.dtypes.front()};
  expect(check_backend(op_case, test_backend(), oracle()));
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
  for (const OpCase& op_case : cases.cases) {
    CAPTURE(op_case.name);
    if (test_backend().info().name == "far") {
      check_far(op_case);
      continue;
    }
    // Checks the reference kernels once, with the default backend. The address sanitizer leaves this out,
    // because it is slow and check_backend() runs these kernels anyway.
    if (is_default_backend() && !address_sanitized) expect(check_op(op_case, oracle()));
    expect(check_backend(op_case, test_backend(), oracle()));
    check_in_layouts(op_case);
    for (const OpCase& variant : with_channels(op_case)) check_in_layouts(variant);
  }
}

void check_other_kernels(const Cases& cases) {
  for (const OpCase& op_case : cases.cases)
    for (const DType dtype : op_case.dtypes) {
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

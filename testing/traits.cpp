#include "testing/traits.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

#include "core/base/error.h"

namespace plexaura::testing {

namespace {

constexpr std::uint64_t seed_of_values = 11;

Tensor drawn(const TensorType& type, std::uint64_t seed) {
  Random random(seed);
  return make(type, is_floating(type.dtype) ? between(0.25, 1) : whole(0, 2), random);
}

// An output that is computed in the memory of an input.
struct Alias {
  std::size_t output;
  std::size_t input;
};

class TraitCheck {
 public:
  TraitCheck(const Graph& graph, const NodeRecord& record) : op_(*record.op), types_(record.types) {
    for (const Value input : record.inputs) inputs_.push_back(drawn(graph.type(input), seed_of_values));
  }

  CaseReport report() && {
    const OpTraits traits = op_.traits();
    check_written();
    if (!traits.elementwise && !traits.view && traits.unread_inputs.empty()) return std::move(report_);
    results_ = run(inputs_);
    if (traits.elementwise) check_elementwise();
    if (traits.view)
      expect(std::memcmp(results_[0].data(), inputs_[0].data(), inputs_[0].bytes()) == 0,
             "says that it is a view, and changes the elements of its input");
    for (const std::size_t input : traits.unread_inputs) check_unread(input);
    return std::move(report_);
  }

 private:
  // Runs the kernel and returns its results. Before the run, each byte of the results is `before`.
  std::vector<Tensor> run(std::vector<Tensor> inputs, std::optional<Alias> alias = {}, int before = 0) const {
    std::vector<Tensor> results(types_.begin(), types_.end());
    for (Tensor& result : results)
      std::memset(result.data(), before, static_cast<std::size_t>(result.bytes()));
    std::vector<HostView> from;
    std::vector<HostView> to;
    for (Tensor& input : inputs) from.push_back({input.data(), &input.type()});
    for (Tensor& result : results) to.push_back({result.data(), &result.type()});
    if (alias) to[alias->output].data = inputs[alias->input].data();
    op_.reference()(op_, {from, to});
    if (alias) results[alias->output] = inputs[alias->input];
    return results;
  }

  void expect(bool holds, const std::string& otherwise) {
    ++report_.comparisons;
    if (!holds) report_.failures += fmt::format("  {} {}\n", op_.name(), otherwise);
  }

  // Checks that the kernel writes all elements. Some kernels refuse the random inputs, for example as
  // indices.
  void check_written() {
    try {
      expect(run(inputs_) == run(inputs_, {}, 1), "leaves elements of its results as they were");
    } catch (const UserError&) {
    }
  }

  void check_elementwise() {
    for (std::size_t input = 0; input < inputs_.size(); ++input)
      for (std::size_t output = 0; output < types_.size(); ++output) {
        if (types_[output] == inputs_[input].type())
          expect(run(inputs_, Alias{output, input}) == results_,
                 fmt::format("says that it is elementwise, and gives something else with output {} in the "
                             "place of input {}",
                             output, input));
        if (types_[output].shape == inputs_[input].shape()) check_own_element(output, input);
      }
  }

  void check_own_element(std::size_t output, std::size_t input) {
    const std::int64_t count = inputs_[input].elements();
    if (count == 0) return;
    for (const std::int64_t element : std::set{std::int64_t{0}, count / 2, count - 1}) {
      std::vector<Tensor> changed = inputs_;
      copy_element(changed[input], element, drawn(inputs_[input].type(), seed_of_values + 1));
      std::vector<Tensor> results = run(std::move(changed));
      copy_element(results[output], element, results_[output]);
      expect(results[output] == results_[output],
             fmt::format("says that it is elementwise, and element {} of input {} changes other elements of "
                         "output {}",
                         element, input, output));
    }
  }

  static void copy_element(Tensor& to, std::int64_t element, const Tensor& from) {
    const std::size_t bytes = size_of(to.dtype());
    const std::size_t offset = static_cast<std::size_t>(element) * bytes;
    std::memcpy(to.data() + offset, from.data() + offset, bytes);
  }

  void check_unread(std::size_t input) {
    std::vector<Tensor> changed = inputs_;
    changed.at(input) = drawn(inputs_[input].type(), seed_of_values + 1);
    expect(
        run(std::move(changed)) == results_,
        fmt::format("says that no kernel reads input {}, and gives something else for another one", input));
  }

  const Op& op_;
  std::vector<TensorType> types_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
  CaseReport report_;
};

}  // namespace

CaseReport check_traits(const OpCase& op_case, DType dtype) {
  Graph graph;
  op_case.build(graph, add_inputs(graph, op_case, dtype));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    if (record.op->name() == op_case.op && record.op->reference() != nullptr)
      return TraitCheck(graph, record).report();
  }
  return {};
}

}  // namespace plexaura::testing

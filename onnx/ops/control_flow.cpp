// Branches and loops whose conditions and counts are known while the graph is built.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <span>

#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/slice.h"

namespace plexaura::onnx {

namespace {

std::vector<Node> branch(Call& call) {
  const bool condition = call.whole_number(0) != 0;
  // Both branches are read, so that neither counts as an attribute without effect.
  const GraphProto& then_branch = call.inner("then_branch");
  const GraphProto& else_branch = call.inner("else_branch");
  return call.add_inner(condition ? then_branch : else_branch, {}, condition ? "then_branch" : "else_branch");
}

// Joins the values of all iterations along a new axis. If the axis is 0 and all values are known while the graph is
// built, the result is known too.
Node stack_iterations(const std::vector<Node>& values, std::int64_t axis) {
  for (const Node& value : values)
    if (value.type() != values[0].type())
      throw UserError(
          fmt::format("its iterations make values of different types, {} and {}; they must be "
                      "equal to be stacked",
                      to_string(values[0].type()), to_string(value.type())));
  const bool all_known =
      std::ranges::all_of(values, [](const Node& value) { return known_value(value) != nullptr; });
  if (axis != 0 || !all_known)
    return stack({values.begin(), values.end()}, normalise_axis(axis, values[0].shape().rank() + 1));
  std::vector<std::int64_t> extents = values[0].shape().extents();
  extents.insert(extents.begin(), static_cast<std::int64_t>(values.size()));
  Tensor joined({values[0].dtype(), Shape(extents)});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor& value = *known_value(values[i]);
    if (value.bytes() != 0) std::memcpy(joined.data() + i * value.bytes(), value.data(), value.bytes());
  }
  return values[0].graph().constant(std::move(joined));
}

// Returns the stacked values of a loop without iterations: no elements of the type that the body declares.
Node stack_nothing(Graph& graph, const ValueProto& declared, std::int64_t axis) {
  const bool is_open = std::ranges::any_of(declared.extents, [](std::int64_t extent) { return extent < 0; });
  if (declared.type == ElementType::undefined || is_open)
    throw UserError(fmt::format(
        "there are no iterations, so the file must give the shape of the body's output '{}'", declared.name));
  std::vector<std::int64_t> extents = declared.extents;
  const auto rank = static_cast<std::int64_t>(extents.size()) + 1;
  extents.insert(extents.begin() + normalise_axis(axis, rank), 0);
  return graph.constant(Tensor({dtype_of(declared.type), Shape(extents)}));
}

// The values that a loop keeps from one iteration to the next, and those that it stacks.
class Iterations {
 public:
  // The body's outputs from `first` on are the carried values and then those that are stacked.
  Iterations(Call& call, const GraphProto& body, std::vector<Node> carried, std::size_t first)
      : call_(call), body_(body), carried_(std::move(carried)), first_(first) {
    if (body.outputs.size() < first + carried_.size())
      throw UserError(fmt::format("its body has {} outputs, but needs at least {}", body.outputs.size(),
                                  first + carried_.size()));
    stacked_.resize(body.outputs.size() - first - carried_.size());
  }

  const std::vector<Node>& carried() const { return carried_; }
  std::size_t stacked() const { return stacked_.size(); }

  // Adds the body for its inputs, which include the carried values. Returns all its outputs.
  std::vector<Node> add(const std::vector<Node>& inputs, const std::string& place) {
    std::vector<Node> outputs = call_.add_inner(body_, inputs, place);
    for (std::size_t i = 0; i < carried_.size(); ++i) {
      const Node& next = outputs[first_ + i];
      if (next.dtype() != carried_[i].dtype())
        throw UserError(fmt::format("{}: its output '{}' must be {} as in the iteration before, not {}",
                                    place, body_.outputs[first_ + i].name, name_of(carried_[i].dtype()),
                                    name_of(next.dtype())));
      carried_[i] = next;
    }
    for (std::size_t i = 0; i < stacked_.size(); ++i)
      stacked_[i].push_back(outputs[first_ + carried_.size() + i]);
    return outputs;
  }

  // Returns the outputs of the node: the last carried values, and the stacked ones. Stacks along the axes in `axes`, by
  // default along axis 0, and in reverse order where `reversed` is not 0.
  std::vector<Node> results(const std::vector<std::int64_t>& axes = {},
                            const std::vector<std::int64_t>& reversed = {}) {
    std::vector<Node> outputs = carried_;
    for (std::size_t i = 0; i < stacked_.size(); ++i) {
      const std::int64_t axis = axes.empty() ? 0 : axes[i];
      if (!reversed.empty() && reversed[i] != 0) std::ranges::reverse(stacked_[i]);
      if (!call_.wants(outputs.size()))
        outputs.emplace_back();
      else if (stacked_[i].empty())
        outputs.push_back(stack_nothing(call_.graph(), body_.outputs[first_ + carried_.size() + i], axis));
      else
        outputs.push_back(stack_iterations(stacked_[i], axis));
    }
    return outputs;
  }

 private:
  Call& call_;
  const GraphProto& body_;
  std::vector<Node> carried_;
  std::size_t first_;
  std::vector<std::vector<Node>> stacked_;  // the values of all iterations by output
};

bool is_true(const Node& condition, const std::string& name, const std::string& place) {
  const Tensor* known = known_value(condition);
  if (known == nullptr)
    throw UnknownValue(name, fmt::format("{}: the condition '{}' must be known when the graph is built, but "
                                         "it is computed when the graph runs",
                                         place, name));
  if (known->elements() != 1)
    throw UserError(
        fmt::format("{}: the condition '{}' must have one element, not {}", place, name, known->elements()));
  return known->to_doubles()[0] != 0;
}

std::vector<Node> loop(Call& call) {
  constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
  const GraphProto& body = call.inner("body");
  const std::int64_t count = call.has(0) ? call.whole_number(0) : endless;
  Node condition = call.has(1) ? call[1] : call.graph().constant(Tensor::scalar(true));
  bool goes_on = !call.has(1) || call.whole_number(1) != 0;
  std::vector<Node> start;
  for (std::size_t i = 2; i < call.inputs(); ++i) start.push_back(call[i]);
  Iterations iterations(call, body, std::move(start), 1);
  for (std::int64_t i = 0; i < count && goes_on; ++i) {
    const std::string place =
        count == endless ? fmt::format("iteration {}", i) : fmt::format("iteration {} of {}", i, count);
    std::vector<Node> inputs{call.graph().constant(Tensor::scalar(i)), condition};
    inputs.insert(inputs.end(), iterations.carried().begin(), iterations.carried().end());
    condition = iterations.add(inputs, place)[0];
    if (i + 1 < count) goes_on = is_true(condition, body.outputs[0].name, place);
  }
  return iterations.results();
}

// Returns an attribute of Scan with one number for each of `count` values; empty if the node does not have it.
std::vector<std::int64_t> numbers_of_scan(Call& call, std::string_view name, std::size_t count) {
  std::vector<std::int64_t> numbers = call.integers(name);
  if (!numbers.empty() && numbers.size() != count)
    throw UserError(
        fmt::format("its attribute '{}' has {} numbers, but must have {}", name, numbers.size(), count));
  return numbers;
}

// One of the sequences of a Scan, and the order in which it is read.
struct ScannedSequence {
  Node values;
  std::int64_t axis = 0;
  bool is_reversed = false;
};

Node scanned_element(const ScannedSequence& sequence, std::int64_t i) {
  const std::int64_t at = sequence.is_reversed ? sequence.values.shape()[sequence.axis] - 1 - i : i;
  return squeeze(slice(sequence.values, {.axis = sequence.axis, .start = at, .stop = at + 1}),
                 {sequence.axis});
}

// Returns the common length of the sequences.
std::int64_t length_of(const std::vector<ScannedSequence>& sequences) {
  const std::int64_t length = sequences[0].values.shape()[sequences[0].axis];
  for (const ScannedSequence& sequence : sequences)
    if (sequence.values.shape()[sequence.axis] != length)
      throw UserError(fmt::format("its sequences have {} and {} elements; they must be equally long", length,
                                  sequence.values.shape()[sequence.axis]));
  return length;
}

std::size_t scanned_inputs(Call& call, std::size_t before) {
  const std::int64_t count = call.integer("num_scan_inputs", 0);
  if (count < 1 || call.inputs() < before || count > static_cast<std::int64_t>(call.inputs() - before))
    throw UserError(
        fmt::format("its attribute 'num_scan_inputs' is {}, but it has {} inputs", count, call.inputs()));
  return static_cast<std::size_t>(count);
}

void add_elements(Iterations& iterations, const std::vector<ScannedSequence>& sequences) {
  const std::int64_t length = length_of(sequences);
  for (std::int64_t i = 0; i < length; ++i) {
    std::vector<Node> inputs = iterations.carried();
    for (const ScannedSequence& sequence : sequences) inputs.push_back(scanned_element(sequence, i));
    iterations.add(inputs, fmt::format("element {} of {}", i, length));
  }
}

std::vector<Node> scan(Call& call) {
  const GraphProto& body = call.inner("body");
  const std::size_t scanned = scanned_inputs(call, 0);
  const auto axes = numbers_of_scan(call, "scan_input_axes", scanned);
  const auto directions = numbers_of_scan(call, "scan_input_directions", scanned);
  std::vector<Node> start;
  for (std::size_t i = 0; i + scanned < call.inputs(); ++i) start.push_back(call[i]);
  std::vector<ScannedSequence> sequences;
  for (std::size_t i = 0; i < scanned; ++i) {
    const Node& values = call[start.size() + i];
    const std::int64_t axis = normalise_axis(axes.empty() ? 0 : axes[i], values.shape().rank());
    sequences.push_back({values, axis, !directions.empty() && directions[i] != 0});
  }
  Iterations iterations(call, body, std::move(start), 0);
  const auto output_axes = numbers_of_scan(call, "scan_output_axes", iterations.stacked());
  const auto output_directions = numbers_of_scan(call, "scan_output_directions", iterations.stacked());
  add_elements(iterations, sequences);
  return iterations.results(output_axes, output_directions);
}

// Version 8 of Scan computes each sample of a batch on its own. Its first input has the lengths of the samples.
std::vector<Node> scan_batch(Call& call) {
  const GraphProto& body = call.inner("body");
  const std::size_t scanned = scanned_inputs(call, 1);
  const auto directions = numbers_of_scan(call, "directions", scanned);
  if (call.has(0)) throw UserError("samples with lengths of their own (input 0) are not supported");
  const std::size_t carried = call.inputs() - 1 - scanned;
  const std::int64_t samples = call[1].shape().rank() == 0 ? 0 : call[1].shape()[0];
  if (samples == 0) throw UserError("its batch has no samples");
  std::vector<std::vector<Node>> of_samples;  // the results of each sample
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    std::vector<Node> start;
    std::vector<ScannedSequence> sequences;
    for (std::size_t i = 0; i < carried + scanned; ++i) {
      const Shape& shape = call[1 + i].shape();
      if (shape.rank() == 0 || shape[0] != samples)
        throw UserError(
            fmt::format("its input {} has the shape {}; axis 0, the samples, must have the extent {}", 1 + i,
                        to_string(shape), samples));
      const Node value = scanned_element({call[1 + i], 0, false}, sample);
      if (i < carried)
        start.push_back(value);
      else
        sequences.push_back({value, normalise_axis(0, value.shape().rank()),
                             !directions.empty() && directions[i - carried] != 0});
    }
    Iterations iterations(call, body, std::move(start), 0);
    add_elements(iterations, sequences);
    of_samples.push_back(iterations.results());
  }
  std::vector<Node> results;
  for (std::size_t i = 0; i < of_samples[0].size(); ++i) {
    std::vector<Node> values;
    for (const auto& outputs : of_samples) values.push_back(outputs[i]);
    results.push_back(values[0].is_empty() ? Node() : stack_iterations(values, 0));
  }
  return results;
}

constexpr Row rows_of_control_flow[] = {
    {"If", 1, branch},
    {"Loop", 1, loop},
    {"Scan", 8, scan_batch},
    {"Scan", 9, scan},
};

}  // namespace

std::span<const Row> control_flow_rows() { return rows_of_control_flow; }

}  // namespace plexaura::onnx

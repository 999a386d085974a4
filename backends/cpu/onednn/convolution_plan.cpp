#include "backends/cpu/onednn/convolution_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cpu/onednn/primitive_kernel.h"
#include "core/host/costs.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

struct Operand {
  Argument argument;
  TensorType type;  // type of the value in the graph
};

bool is_weights(const Operand& operand) {
  return operand.argument.number == DNNL_ARG_WEIGHTS || operand.argument.number == DNNL_ARG_DIFF_WEIGHTS;
}

// A reorder of the weights of a grouped convolution. The graph has them row-major. The library's layouts put
// zeros between the groups, which a Layout cannot express. So the weights are reordered to that layout, or
// back from it, in the workspace.
struct GroupedWeights {
  Argument as_given;
  Argument in_workspace;
  dnnl::reorder::primitive_desc reorder;

  bool is_result() const { return as_given.space == Space::output; }
  Step step() const {
    const Argument& from = is_result() ? in_workspace : as_given;
    const Argument& to = is_result() ? as_given : in_workspace;
    return {dnnl::reorder(reorder),
            {{DNNL_ARG_FROM, from.desc, from.space, from.index},
             {DNNL_ARG_TO, to.desc, to.space, to.index},
             scratchpad_of(reorder)}};
  }
};

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

GroupedWeights make_grouped(const Operand& weights, std::int64_t groups) {
  const Argument& wanted = weights.argument;
  const Argument given{wanted.number, row_major_groups(weights.type, groups), wanted.space, wanted.index};
  const bool is_result = wanted.space == Space::output;
  const memory::desc& from = is_result ? wanted.desc : given.desc;
  const memory::desc& to = is_result ? given.desc : wanted.desc;
  return {given,
          {wanted.number, wanted.desc, Space::workspace},
          {cpu_engine(), from, cpu_engine(), to, attributes_with({})}};
}

// The arguments of a convolution's kernel, and the reorder of its weights if the convolution has groups.
struct Recipe {
  std::vector<Argument> arguments;
  std::optional<GroupedWeights> grouped;

  template <class Primitive, class Described>
  std::vector<Step> steps(const Described& described) const {
    std::vector<Step> steps{{Primitive(described), arguments}};
    if (grouped) steps.insert(grouped->is_result() ? steps.end() : steps.begin(), grouped->step());
    return steps;
  }
};

template <class Described>
Recipe recipe_for(const Described& described, const std::vector<Operand>& operands, std::int64_t groups) {
  Recipe recipe;
  recipe.arguments.push_back(scratchpad_of(described));
  for (const Operand& operand : operands) {
    Argument argument = operand.argument;
    if (groups > 1 && is_weights(operand)) {
      GroupedWeights grouped = make_grouped(operand, groups);
      grouped.in_workspace.index = aligned(
          std::max(described.scratchpad_desc().get_size(), grouped.reorder.scratchpad_desc().get_size()));
      argument = grouped.in_workspace;
      recipe.grouped = std::move(grouped);
    }
    recipe.arguments.push_back(argument);
  }
  return recipe;
}

// Returns the layout of an operand. Returns nothing if a Layout cannot express it.
std::optional<Layout> layout_for(const Operand& operand, std::int64_t groups) {
  if (groups > 1 && is_weights(operand)) return Layout::row_major(operand.type.shape.rank());
  auto layout = layout_of(operand.argument.desc, operand.type.shape);
  if (!layout || layout->bytes(operand.type) != static_cast<std::int64_t>(operand.argument.desc.get_size()))
    return std::nullopt;
  return layout;
}

struct Problem {
  ConvolutionShapes shapes;
  ConvolutionWindow window;
  VectorAxis vector = VectorAxis::dst;
};

const Layout& layout_of_number(const std::vector<Operand>& operands, const Candidate& candidate,
                               std::initializer_list<int> numbers) {
  const auto found = std::ranges::find_if(operands, [&](const Operand& operand) {
    return std::ranges::find(numbers, operand.argument.number) != numbers.end();
  });
  const Argument& argument = found->argument;
  return argument.space == Space::output ? candidate.outputs[argument.index]
                                         : candidate.inputs[argument.index];
}

// True for Winograd kernels. They have no estimate, because their speed depends on more than an estimate can
// know.
bool is_winograd(const std::string& implementation) {
  return implementation.find("wino") != std::string::npos;
}

// Returns a candidate, or nothing for reference code and for layouts that a Layout cannot express. `operands` are in
// the order of the region's inputs and outputs.
template <class Primitive, class Described>
std::optional<Candidate> propose_with(const Described& described, const Problem& problem,
                                      const std::vector<Operand>& operands) {
  const std::string implementation = described.impl_info_str();
  if (is_reference(implementation)) return std::nullopt;
  const std::int64_t groups = problem.window.groups;
  Candidate candidate;
  for (const Operand& operand : operands) {
    const auto layout = layout_for(operand, groups);
    if (!layout) return std::nullopt;
    const bool is_result = operand.argument.space == Space::output;
    (is_result ? candidate.outputs : candidate.inputs).push_back(*layout);
  }
  candidate.implementation = "onednn " + implementation;
  candidate.seconds =
      costs::seconds_of_launch +
      seconds_of_convolution(problem.shapes, groups,
                             layout_of_number(operands, candidate, {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC}),
                             layout_of_number(operands, candidate, {DNNL_ARG_DST, DNNL_ARG_DIFF_DST}),
                             problem.vector, implementation);
  if (is_winograd(implementation)) candidate.seconds = std::numeric_limits<double>::infinity();
  for (const Operand& operand : operands)
    if (operand.argument.space == Space::output && !is_weights(operand))
      candidate.seconds += seconds_to_leave(operand.type, candidate.outputs[operand.argument.index]);
  candidate.make = [described, recipe = recipe_for(described, operands, groups)] {
    return std::make_shared<PrimitiveKernel>(recipe.template steps<Primitive>(described));
  };
  return candidate;
}

// Returns the window of the query's op, which is ConvolutionOf2 or ConvolutionOf3.
template <class ConvolutionOf2, class ConvolutionOf3>
ConvolutionWindow window_of_op(const RegionQuery& query) {
  const Op& op = query.op();
  const bool has_depth = query.type(query.region.outputs[0]).shape.rank() == 5;
  return has_depth ? window_of(op_cast<ConvolutionOf3>(op).options())
                   : window_of(op_cast<ConvolutionOf2>(op).options());
}

// Returns the shape [C, O, 1, ...] for weights [O, C, 1, ...]. The memory is the same; only the first two axes
// swap names.
Shape transposed(const Shape& weights) {
  std::vector<std::int64_t> extents = weights.extents();
  std::swap(extents[0], extents[1]);
  return Shape(std::move(extents));
}

Layout transposed(const Layout& weights) {
  const auto renamed = [](std::int64_t axis) { return axis < 2 ? 1 - axis : axis; };
  std::vector<std::int64_t> order = weights.order();
  for (std::int64_t& axis : order) axis = renamed(axis);
  std::vector<Layout::Block> blocks = weights.blocks();
  for (Layout::Block& block : blocks) block.axis = renamed(block.axis);
  return Layout(std::move(order), std::move(blocks));
}

// Returns the descriptor that backward primitives need as a hint. Their algorithm does not depend on that of
// the forward pass, so the hint is always direct.
ConvolutionForward hint_for(ConvolutionDescs descs) {
  descs.algorithm = dnnl::algorithm::convolution_direct;
  return describe_forward(descs, dnnl::prop_kind::forward_training, {});
}

dnnl::prop_kind kind_of(const Graph& graph) {
  return graph.mode() == Mode::train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}

}  // namespace

std::optional<Candidate> propose_convolution(const RegionQuery& query, ConvolutionLayouts layouts) {
  const Region& region = query.region;
  const ConvolutionWindow window = window_of_op<Conv2dOp, Conv3dOp>(query);
  const DType dtype = query.type(region.outputs[0]).dtype;
  const ConvolutionShapes shapes{query.type(region.inputs[0]).shape, query.type(region.inputs[1]).shape,
                                 query.type(region.outputs[0]).shape, dtype};
  const bool has_bias = region.inputs.size() == 3;
  const auto descs = describe_operands(layouts, shapes, window, has_bias);
  if (!descs) return std::nullopt;
  const auto described = describe_forward(*descs, kind_of(query.graph), attributes_with({}));
  std::vector<Operand> operands{
      {{DNNL_ARG_SRC, described.src_desc(), Space::input, 0}, {dtype, shapes.src}},
      {{DNNL_ARG_WEIGHTS, described.weights_desc(), Space::input, 1}, {dtype, shapes.weights}}};
  if (has_bias)
    operands.push_back({{DNNL_ARG_BIAS, *descs->bias, Space::input, 2}, {dtype, {shapes.dst[1]}}});
  operands.push_back({{DNNL_ARG_DST, described.dst_desc(), Space::output, 0}, {dtype, shapes.dst}});
  return propose_with<dnnl::convolution_forward>(described, {shapes, window}, operands);
}

std::optional<Candidate> propose_input_grad(const RegionQuery& query, ConvolutionLayouts layouts) {
  const Region& region = query.region;
  const ConvolutionWindow window = window_of_op<Conv2dInputGrad, Conv3dInputGrad>(query);
  const DType dtype = query.type(region.outputs[0]).dtype;
  const ConvolutionShapes shapes{query.type(region.outputs[0]).shape, query.type(region.inputs[0]).shape,
                                 query.type(region.inputs[1]).shape, dtype};
  const auto descs = describe_operands(layouts, shapes, window, false);
  if (!descs) return std::nullopt;
  const auto hint = hint_for(*descs);
  const auto described = describe_backward_data(*descs, attributes_with({}), hint);
  return propose_with<dnnl::convolution_backward_data>(
      described, {shapes, window, VectorAxis::src},
      {{{DNNL_ARG_WEIGHTS, described.weights_desc(), Space::input, 0}, {dtype, shapes.weights}},
       {{DNNL_ARG_DIFF_DST, described.diff_dst_desc(), Space::input, 1}, {dtype, shapes.dst}},
       {{DNNL_ARG_DIFF_SRC, described.diff_src_desc(), Space::output, 0}, {dtype, shapes.src}}});
}

std::optional<Candidate> propose_weight_grad(const RegionQuery& query, ConvolutionLayouts layouts) {
  const Region& region = query.region;
  const ConvolutionWindow window = window_of_op<Conv2dWeightGrad, Conv3dWeightGrad>(query);
  const DType dtype = query.type(region.outputs[0]).dtype;
  const ConvolutionShapes shapes{query.type(region.inputs[0]).shape, query.type(region.outputs[0]).shape,
                                 query.type(region.inputs[1]).shape, dtype};
  // oneDNN 2.6's kernel for AVX-512 writes beyond the memory of the weights if there are groups and the
  // images consist of one pixel.
  if (window.groups > 1 && shapes.src.elements() == shapes.src[0] * shapes.src[1]) return std::nullopt;
  const bool has_bias = region.outputs.size() == 2;
  const auto descs = describe_operands(layouts, shapes, window, has_bias);
  if (!descs) return std::nullopt;
  const auto hint = hint_for(*descs);
  const auto described = describe_backward_weights(*descs, attributes_with({}), hint);
  std::vector<Operand> operands{
      {{DNNL_ARG_SRC, described.src_desc(), Space::input, 0}, {dtype, shapes.src}},
      {{DNNL_ARG_DIFF_DST, described.diff_dst_desc(), Space::input, 1}, {dtype, shapes.dst}},
      {{DNNL_ARG_DIFF_WEIGHTS, described.diff_weights_desc(), Space::output, 0}, {dtype, shapes.weights}}};
  if (has_bias)
    operands.push_back({{DNNL_ARG_DIFF_BIAS, *descs->bias, Space::output, 1}, {dtype, {shapes.dst[1]}}});
  return propose_with<dnnl::convolution_backward_weights>(described, {shapes, window}, operands);
}

std::optional<Candidate> propose_input_grad_and_add(const RegionQuery& query, ConvolutionLayouts layouts) {
  const Region& region = query.region;
  const Shape& weights = query.type(region.inputs[0]).shape;
  const Shape& grad_out = query.type(region.inputs[1]).shape;
  const Shape& grad_src = query.type(region.outputs[0]).shape;
  const DType dtype = query.type(region.outputs[0]).dtype;
  const ConvolutionShapes shapes{grad_out, transposed(weights), grad_src, dtype};
  const ConvolutionWindow window = window_of_op<Conv2dInputGrad, Conv3dInputGrad>(query);
  const auto descs = describe_operands(layouts, shapes, window, false);
  if (!descs) return std::nullopt;
  dnnl::post_ops operations;
  operations.append_sum(1.F);
  const auto described =
      describe_forward(*descs, dnnl::prop_kind::forward_training, attributes_with(operations));
  const std::vector<Operand> operands{
      {{DNNL_ARG_WEIGHTS, described.weights_desc(), Space::input, 0}, {dtype, shapes.weights}},
      {{DNNL_ARG_SRC, described.src_desc(), Space::input, 1}, {dtype, grad_out}},
      {{DNNL_ARG_DST, described.dst_desc(), Space::output, 0}, {dtype, grad_src}}};
  auto candidate = propose_with<dnnl::convolution_forward>(described, {shapes, window}, operands);
  if (!candidate) return std::nullopt;
  candidate->implementation += " + sum";
  candidate->inputs[0] = transposed(candidate->inputs[0]);
  candidate->inputs.push_back(candidate->outputs[0]);
  candidate->in_place = {{0, 2}};
  candidate->make = [described, recipe = recipe_for(described, operands, 1)] {
    return std::make_shared<PrimitiveKernel>(recipe.template steps<dnnl::convolution_forward>(described),
                                             StartFrom{2, described.dst_desc().get_size()});
  };
  return candidate;
}

}  // namespace plexaura::onednn

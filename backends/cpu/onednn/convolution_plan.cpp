#include "backends/cpu/onednn/convolution_plan.h"

#include <utility>

#include "backends/cpu/region_match.h"
#include "core/ops/conv2d.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

constexpr double operations_per_second = 1e11;
// The library's blocks: a source of fewer channels is read as it comes, and not padded to a block.
constexpr std::int64_t channels_of_a_block = 16;

struct Shapes {
  Shape src;
  Shape weights;
  Shape dst;
};

memory::desc weights_desc(const Shape& weights, std::int64_t groups) {
  if (groups == 1) return any_layout(weights);
  return row_major({groups, weights[0] / groups, weights[1], weights[2], weights[3]});
}

std::optional<Layout> weights_layout(const memory::desc& desc, const Shape& weights, std::int64_t groups) {
  return groups == 1 ? layout_of(desc, weights) : Layout::row_major(4);
}

ConvolutionDescs descs_of(const Shapes& shapes, const Conv2dOptions& options) {
  return {any_layout(shapes.src),
          weights_desc(shapes.weights, options.groups),
          std::nullopt,
          any_layout(shapes.dst),
          {options.stride.h, options.stride.w},
          {options.dilation.h - 1, options.dilation.w - 1},
          {options.padding.h, options.padding.w}};
}

// Asked for any layout of a source of few channels, the library may fall to its slow reference.
void use_given_source(ConvolutionDescs& descs, const Shape& src, const std::optional<Layout>& given) {
  if (src[1] >= channels_of_a_block || !given) return;
  if (const auto desc = desc_of(*given, {DType::float32, src})) descs.src = *desc;
}

memory::desc bias_desc(std::int64_t channels) { return row_major({channels}); }

dnnl::prop_kind kind_of(const Graph& graph) {
  return graph.mode() == Mode::train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}

double seconds_of(const Shapes& shapes) {
  const std::int64_t per_output = shapes.weights.elements() / shapes.weights[0];
  return 2 * static_cast<double>(shapes.dst.elements() * per_output) / operations_per_second;
}

// The offer that belongs to a primitive, but for its layouts.
template <class Described>
Candidate candidate_of(const Described& primitive, const Shapes& shapes) {
  Candidate candidate;
  candidate.implementation = std::string("onednn ") + primitive.impl_info_str();
  candidate.workspace = primitive.scratchpad_desc().get_size();
  candidate.seconds = seconds_of(shapes);
  return candidate;
}

// Opaque layouts leave the plan empty.
bool set_layouts(Candidate& candidate, const std::vector<std::optional<Layout>>& inputs,
                 const std::vector<std::optional<Layout>>& outputs) {
  for (const auto& layout : inputs) {
    if (!layout) return false;
    candidate.inputs.push_back(*layout);
  }
  for (const auto& layout : outputs) {
    if (!layout) return false;
    candidate.outputs.push_back(*layout);
  }
  return true;
}

// The kernel of a primitive, made when it is asked for.
template <class Primitive, class Described>
std::function<std::shared_ptr<const Kernel>()> maker(const Described& primitive,
                                                     std::vector<Argument> arguments) {
  arguments.push_back(scratchpad_of(primitive));
  return [primitive, arguments = std::move(arguments)] {
    return std::make_shared<PrimitiveKernel>(Primitive(primitive), arguments);
  };
}

// With the source as it is given, or else in any layout.
template <class Describe>
auto describe_with_source(ConvolutionDescs descs, const Shape& src, const std::optional<Layout>& given,
                          const Describe& describe) {
  ConvolutionDescs as_given = descs;
  use_given_source(as_given, src, given);
  try {
    return describe(as_given);
  } catch (const dnnl::error&) {
    return describe(descs);
  }
}

// Weights [O, C, 1, 1] read as [C, O, 1, 1]: the same memory, the first two axes renamed.
Shape transposed(const Shape& weights) { return {weights[1], weights[0], weights[2], weights[3]}; }

Layout transposed(const Layout& weights) {
  const auto renamed = [](std::int64_t axis) { return axis < 2 ? 1 - axis : axis; };
  std::vector<std::int64_t> order = weights.order();
  for (std::int64_t& axis : order) axis = renamed(axis);
  std::vector<Layout::Block> blocks = weights.blocks();
  for (Layout::Block& block : blocks) block.axis = renamed(block.axis);
  return Layout(std::move(order), std::move(blocks));
}

}  // namespace

std::optional<ConvolutionPlan> plan_conv2d(const RegionQuery& query) {
  const Region& region = query.region;
  const Conv2dOptions& options = op_cast<Conv2d>(query.op()).options();
  const Shapes shapes{query.type(region.inputs[0]).shape, query.type(region.inputs[1]).shape,
                      query.type(region.outputs[0]).shape};
  const bool has_bias = region.inputs.size() == 3;
  ConvolutionDescs descs = descs_of(shapes, options);
  if (has_bias) descs.bias = bias_desc(shapes.dst[1]);
  dnnl::post_ops operations;
  if (region.nodes.size() == 2) append_relu(operations);
  const auto primitive =
      describe_with_source(descs, shapes.src, query.given[0], [&](const ConvolutionDescs& with) {
        return describe_forward(with, kind_of(query.graph), attributes_with(operations));
      });

  ConvolutionPlan plan{candidate_of(primitive, shapes), {}};
  std::vector<std::optional<Layout>> inputs{
      layout_of(primitive.src_desc(), shapes.src),
      weights_layout(primitive.weights_desc(), shapes.weights, options.groups)};
  std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 0},
                                  {DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 1},
                                  {DNNL_ARG_DST, primitive.dst_desc(), Space::output, 0}};
  if (has_bias) {
    inputs.emplace_back(Layout::row_major(1));
    arguments.push_back({DNNL_ARG_BIAS, *descs.bias, Space::input, 2});
  }
  if (!set_layouts(plan.candidate, inputs, {layout_of(primitive.dst_desc(), shapes.dst)}))
    return std::nullopt;
  plan.make = maker<dnnl::convolution_forward>(primitive, std::move(arguments));
  return plan;
}

std::optional<ConvolutionPlan> plan_input_grad(const RegionQuery& query) {
  const Region& region = query.region;
  const Conv2dOptions& options = op_cast<Conv2dInputGrad>(query.op()).options();
  const Shapes shapes{query.type(region.outputs[0]).shape, query.type(region.inputs[0]).shape,
                      query.type(region.inputs[1]).shape};
  const ConvolutionDescs descs = descs_of(shapes, options);
  const auto hint = describe_forward(descs, dnnl::prop_kind::forward_training, {});
  const auto primitive = describe_backward_data(descs, attributes_with({}), hint);

  ConvolutionPlan plan{candidate_of(primitive, shapes), {}};
  if (!set_layouts(plan.candidate,
                   {weights_layout(primitive.weights_desc(), shapes.weights, options.groups),
                    layout_of(primitive.diff_dst_desc(), shapes.dst)},
                   {layout_of(primitive.diff_src_desc(), shapes.src)}))
    return std::nullopt;
  plan.make = maker<dnnl::convolution_backward_data>(
      primitive, {{DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 0},
                  {DNNL_ARG_DIFF_DST, primitive.diff_dst_desc(), Space::input, 1},
                  {DNNL_ARG_DIFF_SRC, primitive.diff_src_desc(), Space::output, 0}});
  return plan;
}

std::optional<ConvolutionPlan> plan_weight_grad(const RegionQuery& query) {
  const Region& region = query.region;
  const Conv2dOptions& options = op_cast<Conv2dWeightGrad>(query.op()).options();
  const Shapes shapes{query.type(region.inputs[0]).shape, query.type(region.outputs[0]).shape,
                      query.type(region.inputs[1]).shape};
  const bool has_bias = region.outputs.size() == 2;
  ConvolutionDescs descs = descs_of(shapes, options);
  if (has_bias) descs.bias = bias_desc(shapes.dst[1]);
  const auto primitive =
      describe_with_source(descs, shapes.src, query.given[0], [&](const ConvolutionDescs& with) {
        const auto hint = describe_forward(with, dnnl::prop_kind::forward_training, {});
        return describe_backward_weights(with, attributes_with({}), hint);
      });

  ConvolutionPlan plan{candidate_of(primitive, shapes), {}};
  std::vector<std::optional<Layout>> outputs{
      weights_layout(primitive.diff_weights_desc(), shapes.weights, options.groups)};
  std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 0},
                                  {DNNL_ARG_DIFF_DST, primitive.diff_dst_desc(), Space::input, 1},
                                  {DNNL_ARG_DIFF_WEIGHTS, primitive.diff_weights_desc(), Space::output, 0}};
  if (has_bias) {
    outputs.emplace_back(Layout::row_major(1));
    arguments.push_back({DNNL_ARG_DIFF_BIAS, *descs.bias, Space::output, 1});
  }
  if (!set_layouts(
          plan.candidate,
          {layout_of(primitive.src_desc(), shapes.src), layout_of(primitive.diff_dst_desc(), shapes.dst)},
          outputs))
    return std::nullopt;
  plan.make = maker<dnnl::convolution_backward_weights>(primitive, std::move(arguments));
  return plan;
}

std::optional<ConvolutionPlan> plan_input_grad_and_add(const RegionQuery& query) {
  const Region& region = query.region;
  const Shape& weights = query.type(region.inputs[0]).shape;
  const Shape& grad_out = query.type(region.inputs[1]).shape;
  const Shape& grad_src = query.type(region.outputs[0]).shape;
  const Shapes shapes{grad_out, transposed(weights), grad_src};
  dnnl::post_ops operations;
  operations.append_sum(1.F);
  const auto primitive =
      describe_forward(descs_of(shapes, {}), dnnl::prop_kind::forward_training, attributes_with(operations));

  ConvolutionPlan plan{candidate_of(primitive, shapes), {}};
  const auto as_read = layout_of(primitive.weights_desc(), shapes.weights);
  const auto dst = layout_of(primitive.dst_desc(), grad_src);
  if (!as_read || !set_layouts(plan.candidate,
                               {transposed(*as_read), layout_of(primitive.src_desc(), grad_out), dst}, {dst}))
    return std::nullopt;
  plan.candidate.implementation += " + sum";
  plan.candidate.in_place = {{0, 2}};
  const std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 1},
                                        {DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 0},
                                        {DNNL_ARG_DST, primitive.dst_desc(), Space::output, 0},
                                        scratchpad_of(primitive)};
  plan.make = [primitive, arguments] {
    auto kernel = std::make_shared<PrimitiveKernel>(dnnl::convolution_forward(primitive), arguments);
    kernel->start_from(2, primitive.dst_desc().get_size());
    return kernel;
  };
  return plan;
}

}  // namespace plexaura::onednn

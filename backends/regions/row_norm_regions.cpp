#include "backends/regions/row_norm_regions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "backends/regions/graph_pattern.h"
#include "backends/regions/region_match.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/layer_norm.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

constexpr std::string_view centring = "row_norm";
constexpr std::string_view root_mean_square = "rms_norm";
constexpr std::string_view gradient = "_grad";

struct KindSuffix {
  std::string_view text;
  bool RowNormRegion::*member;
};
constexpr std::array suffixes{
    KindSuffix{"+scale_grad", &RowNormRegion::scale_grad},
    KindSuffix{"+shift_grad", &RowNormRegion::shift_grad}, KindSuffix{"+scale", &RowNormRegion::scales},
    KindSuffix{"+shift", &RowNormRegion::shifts}, KindSuffix{"+add", &RowNormRegion::adds}};

Value input_of(const Graph& graph, Value value, std::size_t index) {
  return graph.record(value.node).inputs[index];
}

Value without_reshape(const Graph& graph, Value value) {
  return is_op(graph, value.node, "reshape") ? input_of(graph, value, 0) : value;
}

bool is_fit(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

// The types of a normalisation, from which its pattern is built.
struct RowNormTypes {
  TensorType x;
  std::int64_t axes;  // number of last axes that form a row
  bool centres;
  std::optional<Shape> reshaped;    // shape of the result, if the rows are reshaped to it
  std::optional<TensorType> scale;  // type of the scale, with the result's dtype; empty: there is no scale
  bool shifts;
};

// A graph with the ops of a normalisation, and with those of its gradient.
class RowNormPattern {
 public:
  explicit RowNormPattern(const RowNormTypes& types) : x(graph.input("x", types.x)) {
    if (types.scale) scale = graph.input("scale", *types.scale);
    if (types.shifts) shift = graph.input("shift", *types.scale);
    Node normal_rows;
    if (types.centres) {
      normal_rows = standardise(x, types.axes);
    } else {
      const Shape row{std::vector<std::int64_t>(types.x.shape.extents().end() - types.axes,
                                                types.x.shape.extents().end())};
      normal_rows = input_of(rms_norm(x, graph.input("row", {types.x.dtype, row})), 0);
    }
    centred = input_of(normal_rows, 0);
    inverse = input_of(normal_rows, 1);
    root = input_of(inverse, 1);
    epsilon = input_of(input_of(root, 0), 1);
    normal = types.reshaped ? reshape(normal_rows, types.reshaped->extents()) : normal_rows;
    result = normal;
    if (types.scale) result = result * scale;
    if (types.shifts) result = result + shift;
  }

  // Appends the gradients to the pattern.
  void differentiate() {
    grad = graph.input("grad", result.type());
    std::vector<Node> wrt{x};
    if (!scale.is_empty()) wrt.push_back(scale);
    if (!shift.is_empty()) wrt.push_back(shift);
    const std::vector<Node> grads = vjp(std::vector{result}, std::vector{grad}, wrt);
    x_grad = grads[0];
    addend = graph.input("addend", x.type());
    x_grad_and_addend = (addend + input_of(x_grad, 0)) + input_of(x_grad, 1);
    if (!scale.is_empty()) scale_grad = sum_in(grads[1]);
    if (!shift.is_empty()) shift_grad = sum_in(grads[2]);
  }

  Graph graph;
  Node x, scale, shift, epsilon;
  Node centred, inverse, root, normal, result;
  Node grad, addend;
  // scale_grad and shift_grad are empty if the gradients of scale and shift are no sums.
  Node x_grad, x_grad_and_addend, scale_grad, shift_grad;

 private:
  Node input_of(const Node& node, std::size_t index) {
    return {graph, plexaura::input_of(graph, node.value(), index)};
  }

  Node sum_in(Node node) {
    while (is_op(graph, node.id(), "reshape")) node = input_of(node, 0);
    return is_op(graph, node.id(), "sum") ? node : Node();
  }
};

// Returns the value 1 / root if `product` is a product with it.
std::optional<Value> inverse_in(const Graph& graph, Value product) {
  if (!is_op(graph, product.node, "mul")) return std::nullopt;
  const Value inverse = input_of(graph, product, 1);
  if (!is_op(graph, inverse.node, "div") || !is_op(graph, input_of(graph, inverse, 1).node, "sqrt"))
    return std::nullopt;
  return inverse;
}

// Returns the number of axes over which the mean below `root` is taken; 0 if `root` is no root of a mean and an addend.
std::int64_t axes_of(const Graph& graph, Value root) {
  const Value sum = input_of(graph, root, 0);
  if (!is_op(graph, sum.node, "add")) return 0;
  const Value mean = input_of(graph, sum, 0);
  if (!is_op(graph, mean.node, "mean")) return 0;
  return static_cast<std::int64_t>(op_cast<Reduce>(*graph.record(mean.node).op).options().axes.size());
}

void append(std::vector<Value>& values, const PatternMatch& match, std::initializer_list<Node> nodes) {
  for (const Node& node : nodes)
    if (!node.is_empty()) values.push_back(match[node]);
}

// The normalised value, and the scale and shift that are applied to it.
struct AffineParts {
  Value normal;
  std::optional<Value> scale;
  bool shifts;
};

std::vector<AffineParts> affine_parts(const Graph& graph, Value last) {
  if (is_op(graph, last.node, "mul"))
    return {{input_of(graph, last, 0), input_of(graph, last, 1), false}, {last, {}, false}};
  const Value product = input_of(graph, last, 0);
  if (!is_op(graph, product.node, "mul")) return {};
  return {{input_of(graph, product, 0), input_of(graph, product, 1), true}};
}

std::optional<Region> forward_region(const Graph& graph, Value last, const AffineParts& parts, bool centres) {
  const Value rows = without_reshape(graph, parts.normal);
  const auto inverse = inverse_in(graph, rows);
  if (!inverse) return std::nullopt;
  const std::int64_t axes = axes_of(graph, input_of(graph, *inverse, 1));
  const TensorType& type = graph.type(rows);
  if (axes == 0 || axes > type.shape.rank() || !is_fit(type.dtype)) return std::nullopt;
  std::optional<TensorType> scale;
  if (parts.scale) scale = graph.type(*parts.scale);
  if (scale && scale->dtype != type.dtype) return std::nullopt;
  const Shape& result = graph.type(last).shape;
  if (result != graph.type(parts.normal).shape ||
      !row_norm_shape(graph.type(last), graph.type(*inverse), scale ? &*scale : nullptr))
    return std::nullopt;
  const bool reshapes = rows != parts.normal;
  RowNormPattern pattern(
      {type, axes, centres, reshapes ? std::optional(result) : std::nullopt, scale, parts.shifts});
  PatternMatch match(pattern.graph, {pattern.epsilon}, graph);
  if (!match.match(pattern.result, last)) return std::nullopt;
  const RowNormRegion facts{.centres = centres, .scales = scale.has_value(), .shifts = parts.shifts};
  Region region{facts.kind(), match.nodes(), {}, {}};
  append(region.inputs, match, {pattern.x, pattern.scale, pattern.shift, pattern.epsilon});
  for (const Value constant : match.constants()) region.inputs.push_back(constant);
  append(region.outputs, match, {pattern.result});
  if (scale) append(region.outputs, match, {pattern.normal});
  if (centres) append(region.outputs, match, {pattern.centred});
  append(region.outputs, match, {pattern.inverse, pattern.root});
  return region;
}

std::vector<Region> match_forward(const Graph& graph, Value last) {
  std::vector<Region> regions;
  for (const AffineParts& parts : affine_parts(graph, last))
    for (const bool centres : {true, false})
      if (auto region = forward_region(graph, last, parts, centres)) {
        regions.push_back(std::move(*region));
        break;
      }
  return regions;
}

// The place where the gradient of a row reaches the ops of a normalisation: grad * (1 / root).
struct RowGradient {
  Value grad;
  Value inverse;
  bool centres;
  bool adds;
};

std::optional<RowGradient> find_gradient(const Graph& graph, Value last) {
  const bool centres = is_op(graph, input_of(graph, last, 1).node, "broadcast_to");
  if (!centres && !is_op(graph, input_of(graph, last, 1).node, "mul_no_nan")) return std::nullopt;
  Value term = input_of(graph, last, 0);
  for (const bool adds : {false, true}) {
    if (adds && !is_op(graph, term.node, "add")) break;
    if (adds) term = input_of(graph, term, 1);
    Value product = term;
    if (centres && is_op(graph, term.node, "add")) product = input_of(graph, term, 0);
    if (const auto inverse = inverse_in(graph, product))
      return RowGradient{input_of(graph, product, 0), *inverse, centres, adds};
  }
  return std::nullopt;
}

// Returns the region of the gradient. With `scaled`, the product of the gradient of the result and the scale, the region
// begins at this product, and with `all` it has the gradients of scale and shift.
std::optional<Region> backward_region(const Graph& graph, Value last, const Uses& uses,
                                      const RowGradient& found, std::optional<Value> scaled, bool all) {
  const TensorType& type = graph.type(last);
  const std::int64_t axes = axes_of(graph, input_of(graph, found.inverse, 1));
  if (axes == 0 || axes > type.shape.rank() || !is_fit(type.dtype)) return std::nullopt;
  std::optional<TensorType> scale;
  if (scaled) scale = graph.type(input_of(graph, *scaled, 1));
  const TensorType& result = graph.type(scaled.value_or(found.grad));
  if (scale && (scale->dtype != type.dtype || graph.type(input_of(graph, *scaled, 0)) != result))
    return std::nullopt;
  if (!row_norm_shape(result, graph.type(found.inverse), scale ? &*scale : nullptr)) return std::nullopt;
  const bool reshapes = scaled && *scaled != found.grad;
  RowNormPattern pattern({type, axes, found.centres, reshapes ? std::optional(result.shape) : std::nullopt,
                          scale, scale.has_value()});
  pattern.differentiate();
  const Node& end = found.adds ? pattern.x_grad_and_addend : pattern.x_grad;
  PatternMatch match(pattern.graph, {pattern.centred, pattern.inverse, pattern.root}, graph);
  if (!match.match(end, last)) return std::nullopt;
  RowNormRegion facts{
      .centres = found.centres, .backward = true, .scales = scale.has_value(), .adds = found.adds};
  const auto finds = [&](const Node& grad) { return all && !grad.is_empty() && match.find(grad, uses); };
  facts.scale_grad = finds(pattern.scale_grad);
  facts.shift_grad = finds(pattern.shift_grad);
  Region region{facts.kind(), match.nodes(pattern.grad.id()), {}, {}};
  if (region.nodes.back() != last.node) return std::nullopt;
  append(region.inputs, match, {pattern.grad, pattern.scale, pattern.centred, pattern.inverse, pattern.root});
  if (facts.scale_grad) append(region.inputs, match, {pattern.normal});
  if (facts.adds) append(region.inputs, match, {pattern.addend});
  for (const Value constant : match.constants(pattern.grad.id())) region.inputs.push_back(constant);
  append(region.outputs, match, {end});
  if (facts.scale_grad) append(region.outputs, match, {pattern.scale_grad});
  if (facts.shift_grad) append(region.outputs, match, {pattern.shift_grad});
  return region;
}

std::vector<Region> match_backward(const Graph& graph, Value last, const Uses& uses) {
  const auto found = find_gradient(graph, last);
  if (!found) return {};
  std::vector<Region> regions;
  const auto offer = [&](std::optional<Value> scaled, bool all) {
    if (auto region = backward_region(graph, last, uses, *found, scaled, all))
      regions.push_back(std::move(*region));
  };
  const Value scaled = without_reshape(graph, found->grad);
  if (is_op(graph, scaled.node, "mul")) {
    offer(scaled, true);
    offer(scaled, false);
  }
  offer({}, false);
  return regions;
}

}  // namespace

std::string RowNormRegion::kind() const {
  std::string kind(centres ? centring : root_mean_square);
  if (backward) kind += gradient;
  for (const KindSuffix& suffix : suffixes)
    if (this->*suffix.member) kind += suffix.text;
  return kind;
}

std::optional<RowNormRegion> row_norm_region(const std::string& kind) {
  std::string_view rest = kind;
  const auto remove = [&](std::string_view text) {
    const bool starts = rest.starts_with(text);
    if (starts) rest.remove_prefix(text.size());
    return starts;
  };
  RowNormRegion region;
  region.centres = remove(centring);
  if (!region.centres && !remove(root_mean_square)) return std::nullopt;
  region.backward = remove(gradient);
  while (!rest.empty()) {
    const auto suffix =
        std::ranges::find_if(suffixes, [&](const KindSuffix& one) { return remove(one.text); });
    if (suffix == suffixes.end()) return std::nullopt;
    region.*(suffix->member) = true;
  }
  return region;
}

std::optional<RowNormShape> row_norm_shape(const TensorType& result, const TensorType& roots,
                                           const TensorType* scale) {
  RowNormShape shape{.rows = roots.shape.elements()};
  if (shape.rows == 0 || result.shape.elements() == 0) return std::nullopt;
  shape.extent = result.shape.elements() / shape.rows;
  if (scale == nullptr) return shape;
  const std::vector<std::int64_t>& all = result.shape.extents();
  const std::vector<std::int64_t>& own = scale->shape.extents();
  if (own.size() > all.size()) return std::nullopt;
  std::size_t axis = 0;  // index of the axis, counted from the last one
  const auto extent_of = [&](const std::vector<std::int64_t>& extents) {
    return extents[extents.size() - 1 - axis];
  };
  for (; axis < own.size() && extent_of(own) == 1; ++axis) shape.run *= extent_of(all);
  std::int64_t period = shape.run;
  for (; axis < own.size() && extent_of(own) == extent_of(all); ++axis) period *= extent_of(all);
  for (; axis < own.size(); ++axis)
    if (extent_of(own) != 1) return std::nullopt;
  if (shape.extent % shape.run != 0 || period % shape.extent != 0) return std::nullopt;
  shape.groups = period / shape.extent;
  return shape;
}

std::vector<Region> match_row_norm(const Graph& graph, NodeId last, const Uses& uses) {
  const Value value{last, 0};
  if (is_op(graph, last, "add")) {
    std::vector<Region> regions = match_backward(graph, value, uses);
    return regions.empty() ? match_forward(graph, value) : regions;
  }
  return is_op(graph, last, "mul") ? match_forward(graph, value) : std::vector<Region>{};
}

}  // namespace plexaura

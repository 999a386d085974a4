#include "backends/cpu/fast/attention/attention_kernels.h"

#include "backends/cpu/fast/attention/attention_backward.h"
#include "backends/cpu/fast/attention/attention_forward.h"
#include "core/host/costs.h"
#include "core/loops/loops.h"
#include "core/ops/dropout.h"

namespace plexaura::fast {

namespace {

MaskView mask_view(const Shape& mask, const Shape& scores) {
  MaskView view{{0}};
  const std::int64_t rank = scores.rank();
  for (std::int64_t axis = 0; axis < rank - 2; ++axis) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t offset : view.offsets)
      for (std::int64_t i = 0; i < scores[axis]; ++i)
        longer.push_back(offset + i * portable::broadcast_stride(mask, scores, axis));
    view.offsets = std::move(longer);
  }
  view.query_step = portable::broadcast_stride(mask, scores, rank - 2);
  view.key_step = portable::broadcast_stride(mask, scores, rank - 1);
  return view;
}

Shape scores_shape(const RegionQuery& query) {
  std::vector<std::int64_t> extents = query.type(query.region.inputs[0]).shape.extents();
  extents.back() = attention_shape(query.graph, query.region).keys;
  return Shape(std::move(extents));
}

WeightsDropout dropout_of(const RegionQuery& query) {
  const NodeId node = *dropout_in(query.graph, query.region);
  const DropoutDraws& options = op_cast<DropoutOp>(*query.graph.record(node).op).options();
  return {DrawnElements(scores_shape(query), options.batch, options.stream), rule_of(options.p)};
}

AttentionPlan plan_of(const RegionQuery& query, const AttentionRegion& region) {
  AttentionPlan plan{region, attention_shape(query.graph, query.region), {}, {}};
  if (region.reads_mask())
    plan.mask = mask_view(query.type(query.region.inputs[region.mask_input()]).shape, scores_shape(query));
  if (region.drops) plan.dropout = dropout_of(query);
  return plan;
}

template <class Attention>
std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const AttentionRegion& region) {
  const double seconds = seconds_of_attention(region, attention_shape(query.graph, query.region));
  const auto attention = std::make_shared<const Attention>(plan_of(query, region), seconds);
  return make_kernel([attention](const Binding& at) { attention->run(at); }, attention->workspace());
}

}  // namespace

std::shared_ptr<const Kernel> make_attention(const RegionQuery& query, const AttentionRegion& region) {
  const bool is_double = query.type(query.region.inputs[0]).dtype == DType::float64;
  if (region.backward)
    return is_double ? make_for<AttentionBackward<double>>(query, region)
                     : make_for<AttentionBackward<float>>(query, region);
  return is_double ? make_for<AttentionForward<double>>(query, region)
                   : make_for<AttentionForward<float>>(query, region);
}

bool attention_pays(const AttentionRegion& region, const AttentionShape& shape) {
  // Numbers of positions from which regions were measured to be faster: see docs/lab/attention.md.
  constexpr std::int64_t fewest_causal = 512;
  constexpr std::int64_t fewest = 4096;
  constexpr std::int64_t many_scores = 1 << 26;  // 268 MB of float32
  if (region.mask == AttentionMaskKind::causal)
    return shape.queries >= fewest_causal && shape.queries <= shape.keys;
  if (shape.pairs * shape.queries * shape.keys >= many_scores) return true;
  return !region.backward && std::min(shape.queries, shape.keys) >= fewest;
}

double seconds_of_attention(const AttentionRegion& region, const AttentionShape& shape) {
  const auto scores = static_cast<double>(shape.pairs * shape.queries * shape.keys);
  const double computed = region.mask == AttentionMaskKind::causal ? scores / 2 : scores;
  const double products = region.backward ? 5 : 2;
  const auto columns = static_cast<double>(shape.features + shape.values) / 2;
  return costs::seconds_of_launch + computed * 2 * products * columns / costs::operations;
}

}  // namespace plexaura::fast

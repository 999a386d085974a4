#include "core/compile/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/compile/rebuild.h"
#include "core/ops/unary.h"
#include "core/scan/scan_op.h"

namespace plexaura {

namespace {

class Narrowing {
 public:
  // `weights`: nodes that count as weights, in addition to the parameters and constants of `source`.
  Narrowing(const Graph& source, DType narrow, std::set<NodeId> weights = {})
      : source_(source), narrow_(narrow), weights_(std::move(weights)) {
    for (NodeId id = 0; id < source.size(); ++id)
      for (const Value input : source.record(id).inputs) read_.insert(input);
  }

  PassGraph run(std::span<const Value> roots) {
    std::vector<Value> wanted(roots.begin(), roots.end());
    for (const Update& update : source_.updates()) wanted.insert(wanted.end(), {update.buffer, update.next});
    PassGraph result = rebuild(
        source_, wanted, [](NodeId) { return true; },
        [&](Graph& target, NodeId id, const std::vector<Value>& inputs) {
          return replace(target, id, inputs);
        },
        false);
    Graph& target = *result.graph;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      result.roots[i] = cast_to(target, result.roots[i], source_.type(wanted[i]).dtype);
    for (std::size_t i = roots.size(); i < wanted.size(); i += 2)
      target.update(Node(target, result.roots[i]), Node(target, result.roots[i + 1]));
    result.roots.resize(roots.size());
    return result;
  }

 private:
  std::optional<std::vector<Value>> replace(Graph& target, NodeId id, const std::vector<Value>& inputs) {
    const NodeRecord& record = source_.record(id);
    if (depends_on_weights_alone(record)) weights_.insert(id);
    if (record.inputs.empty()) return std::nullopt;
    if (const Scan* scan = as_scan(*record.op); scan != nullptr && !has_gradient(*scan, id))
      return append_with_origin(target, with_narrow_body(*scan, record), as_before(target, record, inputs),
                                record.origin);
    const bool narrows = computes_narrow(target, record, inputs);
    std::vector<Value> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_narrow = narrows && is_float32(record.inputs[i]) && !stays_wide(*record.op, i);
      operands.push_back(
          cast_to(target, inputs[i], is_narrow ? narrow_ : source_.type(record.inputs[i]).dtype));
    }
    return append_with_origin(target, record.op, operands, record.origin);
  }

  std::vector<Value> as_before(Graph& target, const NodeRecord& record, const std::vector<Value>& inputs) {
    std::vector<Value> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      operands.push_back(cast_to(target, inputs[i], source_.type(record.inputs[i]).dtype));
    return operands;
  }

  // Returns true if the graph contains the gradient of the scan. The body of such a scan must stay as it is.
  bool has_gradient(const Scan& scan, NodeId id) const {
    if (scan.is_cut()) return true;
    for (auto output = static_cast<std::uint32_t>(scan.outputs() - scan.form().saved);
         output < scan.outputs(); ++output)
      if (read_.contains({id, output})) return true;
    return false;
  }

  // Returns the scan with a body that computes in `narrow` where possible. The operands and the outputs of
  // the body keep their types.
  std::shared_ptr<const Op> with_narrow_body(const Scan& scan, const NodeRecord& record) const {
    const Subgraph& body = scan.body();
    std::set<NodeId> weights;
    for (std::size_t i = 0; i < body.operands(); ++i)
      if (i >= scan.form().carries && !scan.is_stacked(i) && weights_.contains(record.inputs[i].node))
        weights.insert(static_cast<NodeId>(i));
    const std::span<const Value> outputs(body.outputs().data(), scan.outputs() - scan.form().saved);
    PassGraph narrowed = Narrowing(body.graph(), narrow_, std::move(weights)).run(outputs);
    return make_scan(scan.form(), Subgraph(std::move(narrowed.graph), std::move(narrowed.roots)));
  }

  bool computes_narrow(const Graph& target, const NodeRecord& record,
                       const std::vector<Value>& inputs) const {
    const OpTraits traits = record.op->traits();
    const Precision precision = traits.precision;
    if (precision == Precision::wide) return false;
    bool has_narrow = precision == Precision::narrow;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value input = record.inputs[i];
      if (!is_floating(source_.type(input).dtype) || stays_wide(*record.op, i)) continue;
      if (is_unread(traits, i)) {
        // No kernel reads the operand. It is cast only for the op's gradient, which reads it.
        if (is_float32(input) && is_beyond_range(input)) return false;
        continue;
      }
      if (!is_float32(input)) return false;
      const bool is_narrow = target.type(inputs[i]).dtype == narrow_;
      has_narrow = has_narrow || is_narrow;
      if (is_beyond_range(input)) return false;
      if (precision == Precision::follows && !is_narrow && !weights_.contains(input.node)) return false;
    }
    return has_narrow;
  }

  bool depends_on_weights_alone(const NodeRecord& record) const {
    if (const Leaf* leaf = as_leaf(*record.op))
      return leaf->kind() == LeafKind::parameter || leaf->kind() == LeafKind::constant;
    const OpTraits traits = record.op->traits();
    for (std::size_t i = 0; i < record.inputs.size(); ++i)
      if (!is_unread(traits, i) && !weights_.contains(record.inputs[i].node)) return false;
    return !record.inputs.empty();
  }

  static bool is_unread(const OpTraits& traits, std::size_t input) {
    return std::ranges::find(traits.unread_inputs, input) != traits.unread_inputs.end();
  }

  // Returns true for a constant with a finite number that overflows in `narrow`.
  bool is_beyond_range(Value value) const {
    const Leaf* leaf = as_leaf(*source_.record(value.node).op);
    if (leaf == nullptr || leaf->kind() != LeafKind::constant) return false;
    const std::span<const float> wide = std::as_const(*leaf->value()).as<float>();
    const std::vector<double> held = leaf->value()->cast(narrow_).to_doubles();
    for (std::size_t i = 0; i < held.size(); ++i)
      if (std::isfinite(wide[i]) && !std::isfinite(held[i])) return true;
    return false;
  }

  bool is_float32(Value value) const { return source_.type(value).dtype == DType::float32; }

  static bool stays_wide(const Op& op, std::size_t input) {
    const std::vector<std::size_t> wide = op.traits().wide_inputs;
    return std::ranges::find(wide, input) != wide.end();
  }

  Value cast_to(Graph& target, Value value, DType dtype) {
    if (target.type(value).dtype == dtype) return value;
    const auto [known, is_new] = casts_.try_emplace(value);
    if (is_new) {
      const Origin& origin = target.record(value.node).origin;
      known->second =
          append_with_origin(target, std::make_shared<Cast>(CastOptions{dtype}), {value}, origin)[0];
    }
    return known->second;
  }

  const Graph& source_;
  const DType narrow_;
  std::set<NodeId> weights_;      // nodes of the source that depend on parameters and constants alone
  std::set<Value> read_;          // values of the source that a node reads
  std::map<Value, Value> casts_;  // values of the target, cast to the other one of the two dtypes
};

}  // namespace

PassGraph in_mixed_precision(const Graph& graph, std::span<const Value> roots, DType narrow) {
  return Narrowing(graph, narrow).run(roots);
}

}  // namespace plexaura

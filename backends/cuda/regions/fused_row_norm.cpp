#include "backends/cuda/regions/fused_row_norm.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "backends/regions/region_match.h"

namespace plexaura::cuda {

namespace {

struct KindPrefix {
  std::string_view text;
  bool FusedRowNorm::*member;
};
constexpr std::array prefixes{KindPrefix{"cast+", &FusedRowNorm::casts_input},
                              KindPrefix{"sub+", &FusedRowNorm::recentres},
                              KindPrefix{"cast_x+", &FusedRowNorm::casts_x}};
constexpr std::string_view result_cast = "+cast";

Value input_of(const Graph& graph, Value value, std::size_t index) {
  return graph.record(value.node).inputs[index];
}

// Returns the 16-bit value of which this float32 value is the cast.
std::optional<Value> cast_from(const Graph& graph, Value wide) {
  if (!is_op(graph, wide.node, "cast") || !is_float32(graph, wide)) return std::nullopt;
  const Value narrow = input_of(graph, wide, 0);
  return has_16_bits(graph.type(narrow).dtype) ? std::optional(narrow) : std::nullopt;
}

// True unless another region could compute the value and its only reader, a cast, without storing the value.
bool is_stored(const Graph& graph, Value narrow, const Uses& uses) {
  return uses.kept(narrow) || uses.readers(narrow).size() > 1 ||
         !graph.record(narrow.node).op->traits().elementwise;
}

// Makes a region of a plain one, extension by extension.
class Extension {
 public:
  Extension(const Graph& graph, const Uses& uses, Region plain)
      : graph_(graph), uses_(uses), norm_{.of = *row_norm_region(plain.kind)}, region_(std::move(plain)) {
    if (norm_.of.backward)
      read_x();
    else if (norm_.of.centres)
      region_.outputs.push_back(input_of(graph, region_.outputs[norm_.of.scales ? 2 : 1], 1));
  }

  // Returns false if the kernels have no such extension.
  bool cast_input() {
    const Value wide = region_.inputs[0];
    const auto narrow = cast_from(graph_, wide);
    if (!narrow) return false;
    if (norm_.of.backward) {
      const auto is_inside = [&](NodeId reader) {
        return std::ranges::find(region_.nodes, reader) != region_.nodes.end();
      };
      if (uses_.kept(wide) || !std::ranges::all_of(uses_.readers(wide), is_inside)) return false;
    } else {
      region_.outputs.push_back(wide);
    }
    norm_.casts_input = true;
    narrow_ = graph_.type(*narrow).dtype;
    region_.inputs[0] = *narrow;
    region_.nodes.insert(std::ranges::lower_bound(region_.nodes, wide.node), wide.node);
    return true;
  }

  // Adds the cast of the result, and backward that of x. Returns false if the kernels have no such extension.
  bool cast_result(NodeId cast) {
    const DType narrow = graph_.type({cast, 0}).dtype;
    if (narrow_.value_or(narrow) != narrow || !is_float32(graph_, region_.outputs[0])) return false;
    if (norm_.of.backward) {
      Value& x = region_.inputs[norm_.x_input()];
      if (norm_.of.centres && !norm_.recentres) return false;
      const auto narrow_x = cast_from(graph_, x);
      if (!narrow_x || graph_.type(*narrow_x).dtype != narrow || !is_stored(graph_, *narrow_x, uses_))
        return false;
      x = *narrow_x;
      norm_.casts_x = true;
    }
    norm_.casts_result = true;
    region_.nodes.push_back(cast);
    region_.outputs.push_back({cast, 0});
    return true;
  }

  Region region() && {
    region_.kind = norm_.kind();
    return std::move(region_);
  }

 private:
  // Replaces x - mean by x and mean. No other region hides x, because the op that computes its mean reads it, and the
  // mean is an output of the regions of this file.
  void read_x() {
    Value& x = region_.inputs[norm_.x_input()];
    if (!norm_.of.centres || !is_op(graph_, x.node, "sub")) return;
    const Value whole = input_of(graph_, x, 0);
    const Value mean = input_of(graph_, x, 1);
    const Value inverse = region_.inputs[norm_.x_input() + 1];
    if (graph_.type(whole) != graph_.type(x) || !is_op(graph_, mean.node, "mean") ||
        input_of(graph_, mean, 0) != whole || graph_.type(mean) != graph_.type(inverse))
      return;  // a mean over other axes has another shape than one number for each row
    x = whole;
    region_.inputs.insert(region_.inputs.begin() + static_cast<std::ptrdiff_t>(norm_.inputs_read()), mean);
    norm_.recentres = true;
  }

  const Graph& graph_;
  const Uses& uses_;
  FusedRowNorm norm_;
  Region region_;
  std::optional<DType> narrow_;  // the dtype of the first input, if it is cast
};

}  // namespace

std::string FusedRowNorm::kind() const {
  std::string kind;
  for (const KindPrefix& prefix : prefixes)
    if (this->*prefix.member) kind += prefix.text;
  kind += of.kind();
  if (casts_result) kind += result_cast;
  return kind;
}

std::size_t FusedRowNorm::inputs_read() const {
  const auto count = [](bool exists) { return exists ? std::size_t{1} : 0; };
  if (!of.backward) return 2 + count(of.scales) + count(of.shifts);
  return 4 + count(of.scales) + count(of.scale_grad) + count(of.adds) + count(recentres);
}

std::vector<std::size_t> FusedRowNorm::inputs_of_elements() const {
  std::vector<std::size_t> inputs{0};
  if (of.backward) inputs.push_back(x_input());
  if (of.adds) inputs.push_back(inputs_read() - (recentres ? 2 : 1));
  return inputs;
}

std::optional<FusedRowNorm> fused_row_norm(const std::string& kind) {
  FusedRowNorm norm;
  std::string_view rest = kind;
  for (const KindPrefix& prefix : prefixes)
    if (rest.starts_with(prefix.text)) {
      norm.*prefix.member = true;
      rest.remove_prefix(prefix.text.size());
    }
  if (rest.ends_with(result_cast)) {
    norm.casts_result = true;
    rest.remove_suffix(result_cast.size());
  }
  const auto of = row_norm_region(std::string(rest));
  if (!of) return std::nullopt;
  norm.of = *of;
  return norm;
}

std::vector<Region> match_fused_row_norm(const Graph& graph, NodeId last, const Uses& uses) {
  const bool casts = is_op(graph, last, "cast") && has_16_bits(graph.type({last, 0}).dtype);
  const Value wide = casts ? input_of(graph, {last, 0}, 0) : Value{last, 0};
  std::vector<Region> regions;
  for (const Region& plain : match_row_norm(graph, wide.node, uses))
    for (const bool casts_input : {true, false}) {
      Extension extension(graph, uses, plain);
      if (plain.outputs[0] == wide && (!casts_input || extension.cast_input()) &&
          (!casts || extension.cast_result(last)))
        regions.push_back(std::move(extension).region());
    }
  return regions;
}

}  // namespace plexaura::cuda

#include "core/ops/einsum.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/arrange.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

// A letter, or 256 + i for the i-th axis from the end of those that "..." stands for.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_dots = 256;

bool has_label(const Labels& labels, Label label) { return std::ranges::find(labels, label) != labels.end(); }

std::int64_t axis_with(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) - labels.begin();
}

// A value with a label for each axis.
struct Labelled {
  Node value;
  Labels labels;
};

std::int64_t extent_of(const Labelled& x, Label label) { return x.value.shape()[axis_with(x.labels, label)]; }

// Returns x with its axes in the order of `to`. It has all labels of `to`.
Labelled in_order(const Labelled& x, const Labels& to) {
  if (x.labels == to) return x;
  std::vector<std::int64_t> order;
  for (const Label label : to) order.push_back(axis_with(x.labels, label));
  return {permute(x.value, std::move(order)), to};
}

Labelled summed_over(const Labelled& x, const Labels& gone) {
  std::vector<std::int64_t> axes;
  Labels rest;
  for (const Label label : x.labels) {
    if (has_label(gone, label))
      axes.push_back(axis_with(x.labels, label));
    else
      rest.push_back(label);
  }
  return axes.empty() ? x : Labelled{sum(x.value, {.axes = axes}), rest};
}

Labels labels_if(const Labels& labels, const auto& holds) {
  Labels chosen;
  std::ranges::copy_if(labels, std::back_inserter(chosen), holds);
  return chosen;
}

Labels joined(Labels first, const Labels& second, const Labels& third = {}) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

std::int64_t extent_of_all(const Labelled& x, const Labels& labels) {
  std::int64_t extent = 1;
  for (const Label label : labels) extent *= extent_of(x, label);
  return extent;
}

// Returns x with its axes in the order of `to`, and an axis of extent 1 for each label that x lacks.
Node broadcastable(const Labelled& x, const Labels& to) {
  const Labelled ordered =
      in_order(x, labels_if(to, [&](Label label) { return has_label(x.labels, label); }));
  std::vector<std::int64_t> extents;
  for (const Label label : to) extents.push_back(has_label(x.labels, label) ? extent_of(x, label) : 1);
  return reshape(ordered.value, std::move(extents));
}

// The matrices [batch, rows, columns] that these groups of axes form.
Node matrices(const Labelled& x, const Labels& batch, const Labels& rows, const Labels& columns) {
  return reshape(in_order(x, joined(batch, rows, columns)).value,
                 {extent_of_all(x, batch), extent_of_all(x, rows), extent_of_all(x, columns)});
}

Labelled product_of_matrices(const Labelled& a, const Labelled& b, const Labels& batch, const Labels& gone) {
  const Labels own_a = labels_if(a.labels, [&](Label label) { return !has_label(b.labels, label); });
  const Labels own_b = labels_if(b.labels, [&](Label label) { return !has_label(a.labels, label); });
  const Node product = matmul(matrices(a, batch, own_a, gone), matrices(b, batch, gone, own_b));
  std::vector<std::int64_t> extents;
  for (const Label label : joined(batch, own_a)) extents.push_back(extent_of(a, label));
  for (const Label label : own_b) extents.push_back(extent_of(b, label));
  return {reshape(product, std::move(extents)), joined(batch, own_a, own_b)};
}

// The product of a and b, summed over the labels that are not in `kept`.
Labelled contracted(const Labelled& left, const Labelled& right, const Labels& kept) {
  const auto is_gone = [&](const Labelled& other) {
    return [&](Label label) { return !has_label(kept, label) && !has_label(other.labels, label); };
  };
  const Labelled a = summed_over(left, labels_if(left.labels, is_gone(right)));
  const Labelled b = summed_over(right, labels_if(right.labels, is_gone(left)));
  const Labels common = labels_if(a.labels, [&](Label label) { return has_label(b.labels, label); });
  const Labels batch = labels_if(common, [&](Label label) { return has_label(kept, label); });
  const Labels gone = labels_if(common, [&](Label label) { return !has_label(kept, label); });
  if (!gone.empty() && is_floating(a.value.dtype())) return product_of_matrices(a, b, batch, gone);
  const Labels all =
      joined(a.labels, labels_if(b.labels, [&](Label label) { return !has_label(a.labels, label); }));
  return summed_over({broadcastable(a, all) * broadcastable(b, all), all}, gone);
}

bool is_letter(Label label) { return (label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z'); }

Labels letters_of(std::string_view text) { return {text.begin(), text.end()}; }

// The equation of einsum() and what its parts mean for these operands. Each error names the caller's line.
class Equation {
 public:
  Equation(std::string_view text, const std::vector<Operand>& operands) : operands_(operands) {
    std::string plain(text);
    std::erase(plain, ' ');
    const std::size_t arrow = plain.find("->");
    std::string_view left = std::string_view(plain).substr(0, arrow);
    for (;; left.remove_prefix(left.find(',') + 1)) {
      terms_.push_back(labels_of(left.substr(0, left.find(',')), terms_.size()));
      if (left.find(',') == std::string_view::npos) break;
    }
    require(terms_.size() == operands.size(),
            fmt::format("the equation has {} terms for {} operands", terms_.size(), operands.size()));
    result_ = arrow == std::string::npos ? implied_result()
                                         : named_result(std::string_view(plain).substr(arrow + 2));
  }

  const Labels& result() const { return result_; }

  std::vector<Labelled> labelled() const {
    std::vector<Labelled> values;
    for (std::size_t i = 0; i < terms_.size(); ++i)
      values.push_back(diagonals(operands_[i].node(), terms_[i]));
    std::map<Label, std::int64_t> extents;
    for (const Labelled& x : values)
      for (const Label label : x.labels) {
        std::int64_t& extent = extents.try_emplace(label, 1).first->second;
        const std::int64_t own = extent_of(x, label);
        require(own == extent || own == 1 || extent == 1,
                fmt::format("the extents {} and {} of axis {} differ", extent, own, name_of_label(label)));
        if (extent == 1) extent = own;
      }
    for (Labelled& x : values) x = without_broadcast_axes(x, extents);
    return values;
  }

 private:
  void require(bool holds, const std::string& rule) const { require_that(holds, "einsum", operands_, rule); }

  static std::string name_of_label(Label label) {
    return label < first_of_dots ? fmt::format("'{}'", static_cast<char>(label)) : "of '...'";
  }

  // The labels of a term, in which "..." may stand for `dots` axes.
  Labels expanded(std::string_view term, std::int64_t dots) const {
    const std::size_t at = term.find("...");
    Labels labels = letters_of(term.substr(0, at));
    if (at != std::string_view::npos) {
      for (std::int64_t i = dots; i-- > 0;) labels.push_back(first_of_dots + static_cast<Label>(i));
      const Labels rest = letters_of(term.substr(at + 3));
      labels.insert(labels.end(), rest.begin(), rest.end());
    }
    for (const Label label : labels)
      require(label >= first_of_dots || is_letter(label),
              fmt::format("'{}' is no letter; an axis is a letter, and '...' stands for several axes",
                          static_cast<char>(label)));
    return labels;
  }

  Labels labels_of(std::string_view term, std::size_t operand) {
    if (operand >= operands_.size()) return {};
    const std::int64_t rank = operands_[operand].node().shape().rank();
    const bool has_dots = term.find("...") != std::string_view::npos;
    const auto letters = static_cast<std::int64_t>(term.size()) - (has_dots ? 3 : 0);
    require(has_dots ? letters <= rank : letters == rank,
            fmt::format("the term '{}' has {} letters for the {} axes of operand {}", term, letters, rank,
                        operand));
    if (has_dots) dots_ = std::max(dots_, rank - letters);
    return expanded(term, rank - letters);
  }

  Labels implied_result() const {
    std::map<Label, int> uses;
    for (const Labels& term : terms_)
      for (const Label label : term) ++uses[label];
    Labels labels = expanded("...", dots_);
    for (const auto& [label, count] : uses)
      if (label < first_of_dots && count == 1) labels.push_back(label);
    return labels;
  }

  Labels named_result(std::string_view term) const {
    Labels labels = expanded(term, dots_);
    for (const Label label : labels) {
      require(std::ranges::any_of(terms_, [&](const Labels& own) { return has_label(own, label); }),
              fmt::format("no operand has the axis {} of the result", name_of_label(label)));
      require(std::ranges::count(labels, label) == 1,
              fmt::format("the result has the axis {} twice", name_of_label(label)));
    }
    return labels;
  }

  // The value with each label once: a label that occurs twice becomes the diagonal of these axes.
  Labelled diagonals(const Node& node, const Labels& term) const {
    Labelled x{node, term};
    for (std::size_t i = 0; i < x.labels.size();) {
      const Label label = x.labels[i];
      const auto second =
          std::find(x.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, x.labels.end(), label);
      if (second == x.labels.end()) {
        ++i;
        continue;
      }
      const auto row = static_cast<std::int64_t>(i);
      const std::int64_t column = second - x.labels.begin();
      require(x.value.shape()[row] == x.value.shape()[column],
              fmt::format("the two axes {} of an operand have the extents {} and {}", name_of_label(label),
                          x.value.shape()[row], x.value.shape()[column]));
      x.value = diagonal(x.value, 0, row, column);
      x.labels.erase(second);
      x.labels.erase(x.labels.begin() + row);
      x.labels.push_back(label);
    }
    return x;
  }

  // Removes axes of extent 1 whose label has another extent in another operand.
  static Labelled without_broadcast_axes(const Labelled& x, const std::map<Label, std::int64_t>& extents) {
    Labelled result{x.value, {}};
    std::vector<std::int64_t> kept;
    for (const Label label : x.labels)
      if (extent_of(x, label) == extents.at(label)) {
        result.labels.push_back(label);
        kept.push_back(extent_of(x, label));
      }
    if (result.labels.size() < x.labels.size()) result.value = reshape(x.value, std::move(kept));
    return result;
  }

  const std::vector<Operand>& operands_;
  std::vector<Labels> terms_;
  std::int64_t dots_ = 0;  // axes that "..." stands for, in the operand with most of them
  Labels result_;
};

void require_one_dtype(std::string_view builder, const std::vector<Operand>& operands) {
  const DType dtype = operands[0].node().dtype();
  for (const Operand& operand : operands)
    require_that(operand.node().dtype() == dtype, builder, operands,
                 "the operands must have one dtype; cast() one of them");
  require_that(dtype != DType::boolean, builder, operands,
               "is defined for numbers, not for bool; use cast()");
}

}  // namespace

Node einsum(std::string_view equation, const std::vector<Operand>& operands) {
  if (operands.empty()) throw UserError("einsum of nothing: it needs at least one operand");
  require_one_dtype("einsum", operands);
  const Operand& first = operands[0];
  const Graph::WithOrigin guard = origin_of_caller(first);
  const Equation parsed(equation, operands);
  const std::vector<Labelled> values = parsed.labelled();
  Labelled product = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    Labels kept = parsed.result();
    for (std::size_t later = i + 1; later < values.size(); ++later) kept = joined(kept, values[later].labels);
    product = contracted(product, values[i], kept);
  }
  const auto is_summed = [&](Label label) { return !has_label(parsed.result(), label); };
  product = summed_over(product, labels_if(product.labels, is_summed));
  return in_order(product, parsed.result()).value;
}

Node tensordot(Operand a, Operand b, std::vector<std::int64_t> axes_a, std::vector<std::int64_t> axes_b) {
  require_one_dtype("tensordot", {a, b});
  require_that(axes_a.size() == axes_b.size(), "tensordot", {a, b},
               fmt::format("{} axes of a cannot be paired with {} of b", axes_a.size(), axes_b.size()));
  axes_of("tensordot", a, axes_a);
  axes_of("tensordot", b, axes_b);
  const Graph::WithOrigin guard = origin_of_caller(a);
  Labelled left{a.node(), Labels(static_cast<std::size_t>(a.node().shape().rank()))};
  Labelled right{b.node(), Labels(static_cast<std::size_t>(b.node().shape().rank()))};
  std::iota(left.labels.begin(), left.labels.end(), 0);
  std::iota(right.labels.begin(), right.labels.end(), static_cast<Label>(left.labels.size()));
  Labels kept = joined(left.labels, right.labels);
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    const std::int64_t of_a = axis_of("tensordot", a, axes_a[i], left.value.shape().rank());
    const std::int64_t of_b = axis_of("tensordot", b, axes_b[i], right.value.shape().rank());
    const std::int64_t extent_a = left.value.shape()[of_a];
    const std::int64_t extent_b = right.value.shape()[of_b];
    require_that(extent_a == extent_b, "tensordot", {a, b},
                 fmt::format("axis {} of a and axis {} of b have the extents {} and {}", of_a, of_b, extent_a,
                             extent_b));
    const Label label = left.labels[static_cast<std::size_t>(of_a)];
    std::erase(kept, label);
    std::erase(kept, right.labels[static_cast<std::size_t>(of_b)]);
    right.labels[static_cast<std::size_t>(of_b)] = label;
  }
  const Labelled product = contracted(left, right, kept);
  return in_order(product, kept).value;
}

Node tensordot(Operand a, Operand b, std::int64_t count) {
  require_that(count >= 0 && count <= a.node().shape().rank() && count <= b.node().shape().rank(),
               "tensordot", {a, b}, fmt::format("both operands must have the {} axes to sum over", count));
  std::vector<std::int64_t> last(static_cast<std::size_t>(count));
  std::vector<std::int64_t> first(static_cast<std::size_t>(count));
  std::iota(last.begin(), last.end(), -count);
  std::iota(first.begin(), first.end(), 0);
  return tensordot(a, b, std::move(last), std::move(first));
}

}  // namespace plexaura

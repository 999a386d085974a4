#include "models/zoo/summary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/leaf.h"
#include "core/graph/uses.h"
#include "models/zoo/sample.h"

namespace plexaura {

namespace {

struct SummaryRow {
  std::string path;
  std::vector<std::string> ops = {};
  Shape output = {};
  std::int64_t parameters = 0;
};

Shape without_batch(const Shape& shape) {
  if (shape.rank() == 0) return shape;
  return Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
}

std::string scope_of(std::string_view parameter) {
  const auto dot = parameter.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view{} : parameter.substr(0, dot));
}

// Returns the number of elements of trainable and frozen parameters in each scope.
std::map<std::string, std::int64_t> parameters_by_scope(const std::vector<ParameterSpec>& specs) {
  std::map<std::string, std::int64_t> counts;
  for (const ParameterSpec& spec : specs)
    if (spec.role != ParameterRole::buffer) counts[scope_of(spec.name)] += spec.type.shape.elements();
  return counts;
}

// Returns the rows of a model in the order of its ops. Consecutive ops of one scope form a row. If a scope
// occurs again, its later rows show no parameters. Nodes that the output does not need, such as updates of
// batch norm's running statistics, are left out.
std::vector<SummaryRow> rows_of(const Node& output, const std::vector<ParameterSpec>& specs) {
  const std::vector<bool> needed = nodes_needed(output.graph(), std::array{output.value()});
  std::map<std::string, std::int64_t> parameters = parameters_by_scope(specs);
  std::vector<SummaryRow> rows;
  for (NodeId id = 0; id < needed.size(); ++id) {
    const NodeRecord& record = output.graph().record(id);
    if (!needed[id] || as_leaf(*record.op) != nullptr) continue;
    const std::string& scope = record.origin.scope;
    if (rows.empty() || rows.back().path != scope)
      rows.push_back({.path = scope, .parameters = std::exchange(parameters[scope], 0)});
    SummaryRow& row = rows.back();
    row.output = without_batch(record.types[0].shape);
    if (const std::string op(record.op->name()); std::ranges::find(row.ops, op) == row.ops.end())
      row.ops.push_back(op);
  }
  return rows;
}

std::int64_t elements(const std::vector<ParameterSpec>& specs, ParameterRole role) {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : specs)
    if (spec.role == role) total += spec.type.shape.elements();
  return total;
}

// Formats columns as wide as their widest cell. The last column is aligned to the right.
std::string table_of(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) text += fmt::format("{:<{}}  ", line[i], widths[i]);
    text += fmt::format("{:>{}}\n", line.back(), widths.back());
  }
  return text;
}

}  // namespace

std::string with_commas(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string summary(Model& model) {
  const std::vector<ParameterSpec> specs = specs_of(model, model.dtype());
  Graph graph(Mode::train);  // a training graph contains dropout ops
  const Node output = model(one_sample(graph, model.info(), model.dtype()));
  std::vector<std::vector<std::string>> lines{{"layer", "ops", "output", "parameters"}};
  for (const SummaryRow& row : rows_of(output, specs))
    lines.push_back({row.path.empty() ? "-" : row.path, fmt::format("{}", fmt::join(row.ops, ", ")),
                     to_string(row.output), with_commas(row.parameters)});
  const std::int64_t frozen = elements(specs, ParameterRole::frozen);
  return table_of(lines) +
         fmt::format("{} parameters{}, {} elements of buffers; samples {}, {} {}\n",
                     with_commas(elements(specs, ParameterRole::trainable) + frozen),
                     frozen > 0 ? fmt::format(" ({} of them frozen)", with_commas(frozen)) : "",
                     with_commas(elements(specs, ParameterRole::buffer)), to_string(model.sample_shape()),
                     model.classes(), name_of_outputs(model.info().task));
}

}  // namespace plexaura

#include "onnx/export/export_table.h"

#include <map>

namespace plexaura::onnx {

namespace {

const std::map<std::string_view, const ExportRow*>& export_table() {
  static const std::map<std::string_view, const ExportRow*> rows = [] {
    std::map<std::string_view, const ExportRow*> made;
    for (const auto family :
         {exported_elementwise(), exported_activations(), exported_shapes(), exported_indices(),
          exported_reductions(), exported_windows(), exported_norms()})
      for (const ExportRow& row : family) made[row.op] = &row;
    return made;
  }();
  return rows;
}

AttributeValue attribute_of(const ExportCall& call, std::string_view option) {
  for (const auto& [name, value] : call.options().fields()) {
    if (name != option) continue;
    if (const auto* flag = std::get_if<bool>(&value)) return std::int64_t{*flag ? 1 : 0};
    if (const auto* real = std::get_if<double>(&value)) return static_cast<float>(*real);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) return *integers;
  }
  return call.integer(option);
}

}  // namespace

std::vector<std::string> export_same(ExportCall& call, const ExportRow& row) {
  Attributes attributes;
  for (const ExportedOption& option : row.options)
    if (!option.option.empty()) attributes.emplace_back(option.attribute, attribute_of(call, option.option));
  return {call.add(row.onnx, call.inputs(), std::move(attributes))};
}

const ExportRow* find_export_row(std::string_view op) {
  const auto found = export_table().find(op);
  return found == export_table().end() ? nullptr : found->second;
}

}  // namespace plexaura::onnx

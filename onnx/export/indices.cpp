// Ops that read or write at indices, and ops that order elements.

#include <numeric>

#include "onnx/export/export_table.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

// Repeats input i along all axes but `axis`, along which it keeps its extent, to the shape of the result.
std::string repeated_beside(ExportCall& call, std::size_t i, std::int64_t axis) {
  const TensorType& type = call.input_type(i);
  std::vector<std::int64_t> extents = call.type().shape.extents();
  extents[static_cast<std::size_t>(axis)] = type.shape[axis];
  const Shape shape(extents);
  return type.shape == shape ? call[i]
                             : call.add("Expand", {call[i], call.shape(shape)}, {type.dtype, shape});
}

Names taken_along_axis(ExportCall& call, const ExportRow&) {
  const std::int64_t axis = call.integer("axis");
  const std::string x = repeated_beside(call, 0, axis);
  const std::string indices = repeated_beside(call, 1, axis);
  return {call.add("GatherElements", {x, indices}, {{"axis", axis}})};
}

// The standard leaves open which update counts if an index is repeated; runtimes take the last one, too.
Names scattered(ExportCall& call, const ExportRow&) {
  return {call.add("ScatterElements", call.inputs(), {{"axis", call.integer("axis")}})};
}

Names scattered_sums(ExportCall& call, const ExportRow&) {
  const std::string zeros = call.add("Expand", {call.number(0), call.shape(call.type().shape)});
  return {call.add("ScatterElements", {zeros, call[1], call[0]},
                   {{"axis", call.integer("axis")}, {"reduction", std::string("add")}})};
}

// Compares each label with all classes, since the standard's OneHot counts negative labels from the end.
Names exported_one_hot(ExportCall& call, const ExportRow&) {
  const Shape& shape = call.type().shape;
  std::vector<std::int64_t> classes(static_cast<std::size_t>(call.integer("classes")));
  std::iota(classes.begin(), classes.end(), std::int64_t{0});
  std::vector<std::int64_t> column = call.input_type(0).shape.extents();
  column.push_back(1);
  const std::string labels =
      call.add("Unsqueeze", {call[0], call.integers({shape.rank() - 1})}, {DType::int64, Shape(column)});
  const std::string equal = call.add("Equal", {labels, call.integers(classes)}, {DType::boolean, shape});
  return {call.add("Cast", {equal}, {{"to", static_cast<std::int64_t>(element_type_of(call.type().dtype))}})};
}

// Orders the last axis. Of equal elements the first one comes first, as in the standard.
Names ordered(ExportCall& call, const ExportRow&) {
  const TensorType& x = call.input_type(0);
  if (x.dtype == DType::boolean) call.refuse("argsort of bool");
  const std::int64_t count = call.type().shape[call.type().shape.rank() - 1];
  return {call.add_all("TopK", {call[0], call.integers({count})}, {{x.dtype, call.type().shape}, call.type()},
                       {{"axis", std::int64_t{-1}},
                        {"largest", std::int64_t{call.flag("descending") ? 1 : 0}},
                        {"sorted", std::int64_t{1}}})[1]};
}

constexpr ExportRow index_export[] = {
    {"argsort", ordered, "TopK"},
    {"gather", export_same, "Gather", {{{"axis", "axis"}}}},
    {"one_hot", exported_one_hot, "Equal"},
    {"scatter", scattered, "ScatterElements"},
    {"take_along_axis", taken_along_axis, "GatherElements"},
    {"take_along_axis_grad", scattered_sums, "ScatterElements"},
};

}  // namespace

std::span<const ExportRow> exported_indices() { return index_export; }

}  // namespace plexaura::onnx

#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/export/export_call.h"

namespace plexaura::onnx {

// Adds the nodes of a file that compute one node of a graph, and returns the names of its outputs. Outputs at the end
// that only gradients read may be left out. Throws NoCounterpart if the standard cannot compute it.
using ExportFunction = std::vector<std::string> (*)(ExportCall& call, const struct ExportRow& row);

// An option of an op that is an attribute in the standard.
struct ExportedOption {
  std::string_view option = {};
  std::string_view attribute = {};
};

// The export of an op. `onnx` is the name of its counterpart, if there is one.
struct ExportRow {
  std::string_view op;
  ExportFunction write = nullptr;
  std::string_view onnx = {};
  std::array<ExportedOption, 2> options = {};
};

// Adds the counterpart of the row, with the same inputs, and with the options of the row as attributes.
std::vector<std::string> export_same(ExportCall& call, const ExportRow& row);

// The rows of each family of ops.
std::span<const ExportRow> exported_elementwise();
std::span<const ExportRow> exported_activations();
std::span<const ExportRow> exported_shapes();
std::span<const ExportRow> exported_indices();
std::span<const ExportRow> exported_reductions();
std::span<const ExportRow> exported_windows();
std::span<const ExportRow> exported_norms();

// Returns the row of an op, or null if the op cannot be exported.
const ExportRow* find_export_row(std::string_view op);

}  // namespace plexaura::onnx

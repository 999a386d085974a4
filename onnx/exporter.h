#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "core/graph/graph.h"
#include "core/params/parameter_store.h"

namespace plexaura::onnx {

// An output of an exported model.
struct ExportedOutput {
  std::string name;
  Node node;
};

// Returns the bytes of an ONNX file, with version 18 of the standard's ops, that computes these outputs of a graph of
// Mode::inference. The inputs of the graph are those of the file. Parameters and buffers are initialisers under their
// names, with the values of the store. Names of nodes begin with the modules that have made them: "layer1.0.conv1/conv2d_7".
// Every value has its type, with the extents of the graph, also that of the batch. A loop becomes the nodes of all of
// its steps. FileModel reads the file.
//
// Throws UserError for a graph of Mode::train; for two outputs with one name; for all ops at once that ONNX does not
// have, each with the lines that made its nodes; and if the file would have 2 GiB or more.
std::string export_graph(std::span<const ExportedOutput> outputs, const ParameterStore& store);

// Writes such a file, which appears completely or not at all. Throws as export_graph() and AtomicFile do.
void export_to(const std::filesystem::path& file, std::span<const ExportedOutput> outputs,
               const ParameterStore& store);

}  // namespace plexaura::onnx

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "onnx/export/model_writer.h"

#include "core/graph/graph.h"
#include "core/params/parameter_store.h"

namespace plexaura::onnx {

// An output of an exported model.
struct ExportedOutput {
  std::string name;
  Node node;
};

// Returns the bytes of an ONNX file, with version 18 of the standard's ops, that computes these outputs of a graph of
// Mode::inference. The inputs that the outputs need are those of the file. Parameters and buffers are initialisers
// under their names, with the values of the store. Names of nodes begin with the modules that have made them:
// "layer1.0.conv1/conv2d_7". Every value has its type, with the extents of the graph, also that of the batch. A loop
// becomes the nodes of all of its steps. FileModel reads the file.
//
// The elements of initialisers are moved to the `external` file, if it is passed and used.
//
// Throws UserError for a graph of Mode::train; for no outputs, outputs of several graphs, and names that are not
// unique; for a loop of too many nodes; for all ops at once that ONNX does not have, each with the lines that made
// its nodes; and if the file would have 2 GiB or more, which the format does not allow.
std::string export_graph(std::span<const ExportedOutput> outputs, const ParameterStore& store,
                         const ExternalFile* external = nullptr);

// The place to which the elements of initialisers are written.
enum class WeightsPlace : std::uint8_t {
  inside_if_small,  // in the model's file, unless it would have 2 GiB or more
  beside,           // in a file beside the model, "FILE.HASH.data", with a hash of the weights
};

// Writes the file of export_graph(), and the file with its weights if there is one. Each appears completely or not at
// all. The model's file is the last one, so that it never refers to a file that is missing, or that has the weights of
// another export. Then the weights of earlier exports to `file` are removed. Throws as export_graph() and AtomicFile do.
void export_to(const std::filesystem::path& file, std::span<const ExportedOutput> outputs,
               const ParameterStore& store, WeightsPlace weights = WeightsPlace::inside_if_small);

// Writes a model as export_to() does, if it is made of several exports, such as one with an open batch: `make_bytes`
// returns its bytes, and gets the external file, to which it may write. If it writes there, it is called twice, the first
// time for the hash.
void write_model_to(const std::filesystem::path& file, WeightsPlace weights,
                    const std::function<std::string(const ExternalFile&)>& make_bytes);

}  // namespace plexaura::onnx

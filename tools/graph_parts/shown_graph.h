#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/described_model.h"

#include "core/compile/program.h"

namespace plexaura {

// The arguments that say which graph is shown.
struct GraphSource {
  ModelSource model;  // ModelSource::file may also be an ONNX file
  std::string mode = "inference";
  std::int64_t batch = 1;
};

struct ShownGraph {
  std::unique_ptr<Graph> graph;
  std::vector<ProgramOutput> outputs;
};

// Builds the graph of a YAML file or of an ONNX file. An extent that an ONNX file leaves open is
// GraphSource::batch. Throws UserError for what read_model() and onnx::FileModel refuse, and for arguments
// that have no effect on an ONNX file.
ShownGraph build_graph(const GraphSource& source);

}  // namespace plexaura

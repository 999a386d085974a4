#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/described_model.h"

namespace plexaura {

struct OnnxExport {
  ModelSource model;
  std::string file;
  std::string weights;
  bool untrained = false;
  std::int64_t batch = 1;
  bool open_batch = false;  // the file takes any number of samples
  bool external = false;    // weights are in a file beside the model, also if they are few
};

struct OnnxRun {
  std::string file;
  std::vector<std::string> inputs;  // NAME=FILE
  std::int64_t seed = 1;            // of inputs without a file
  std::int64_t open = 1;            // extents that the file leaves open, of inputs without a file
  std::string save;                 // folder for the outputs; empty: they are only printed
  std::string backend = "cpu";
};

struct OnnxCheck {
  std::string path;  // a file, or a folder with a file and folders of test data
  std::string backend = "cpu";
};

// Writes the model of a YAML file to an ONNX file.
void export_onnx(const OnnxExport& command);
// Computes the outputs of an ONNX file and prints them. Also writes them as files of numpy if `save` names a folder.
void run_onnx(const OnnxRun& command);
// Prints the ops of an ONNX file, and compares what it computes with test data. Throws UserError that lists all ops
// which are missing, and Error if a result differs.
void check_onnx(const OnnxCheck& command);

}  // namespace plexaura

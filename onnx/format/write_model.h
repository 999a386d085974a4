#pragma once

#include <string>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// Returns the bytes of a file with this model, which parse_model() reads. Elements of tensors must be in
// TensorProto::raw or external. Not written are sparse values, functions, domains of nodes, and attributes that are
// graphs, reals or texts.
std::string write_model(const ModelProto& model);

}  // namespace plexaura::onnx

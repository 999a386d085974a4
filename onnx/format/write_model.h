#pragma once

#include <string>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// Returns the bytes of a file with this model, which parse_model() reads. Elements of tensors must be in
// TensorProto::raw or external. Sparse values and functions are not written.
std::string write_model(const ModelProto& model);

}  // namespace plexaura::onnx

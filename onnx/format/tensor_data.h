#pragma once

#include <filesystem>

#include "onnx/format/proto.h"

#include "core/tensor/tensor.h"

namespace plexaura::onnx {

// Returns the type of a tensor. Throws UserError, which names the tensor, for types of elements that there are
// not, and for impossible extents.
TensorType type_of(const TensorProto& proto);

// Returns the elements of a tensor. If they are in a file of their own, it must be below `folder`, the folder of
// the model. Throws UserError, which names the tensor, if the number of elements does not fit the extents, before
// it allocates memory for them.
Tensor read_tensor(const TensorProto& proto, const std::filesystem::path& folder);

}  // namespace plexaura::onnx

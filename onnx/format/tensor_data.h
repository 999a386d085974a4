#pragma once

#include <filesystem>

#include "onnx/format/proto.h"

#include "core/tensor/tensor.h"

namespace plexaura::onnx {

// A tensor of a file has at most so many axes.
constexpr std::size_t most_axes = 64;

// Returns the type of a tensor. Throws UserError, which names the tensor, for types of elements that there are
// not, for impossible extents, and for too many axes.
TensorType type_of(const TensorProto& proto);

// Returns the type as type_of() does, but also throws the UserError of read_tensor() if the elements are not there. So
// memory is only allocated for as many elements as a file has.
TensorType checked_type_of(const TensorProto& proto, const std::filesystem::path& folder);

// Returns the elements of a tensor. If they are in a file of their own, it must be below `folder`, the folder of
// the model, after all links have been followed. An empty `folder` stands for no folder: then no file is read.
// Throws UserError, which names the tensor, if the number of elements does not fit the extents, before it
// allocates memory for them.
Tensor read_tensor(const TensorProto& proto, const std::filesystem::path& folder);

}  // namespace plexaura::onnx

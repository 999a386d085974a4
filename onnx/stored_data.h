#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace plexaura::onnx {

// Reads a file that holds one tensor in the standard's format, such as "input_0.pb". Throws UserError, which names the
// file.
Tensor read_stored_tensor(const std::filesystem::path& path);

// Reads the tensors "input_0.pb", "input_1.pb", ... of a folder with test data, or those of another kind: "output".
std::vector<Tensor> read_stored_tensors(const std::filesystem::path& folder, const std::string& kind);

// The distance that an element may have from the expected one. The defaults are those of the standard's own tests.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// Returns a text about the first difference of the types or of the elements; empty if none is beyond the tolerance. NaN
// equals NaN.
std::string difference(const Tensor& found, const Tensor& expected, Tolerance tolerance = {});

// Returns the largest distance of two elements, of tensors with one type. Equal elements have the distance 0, and so have
// two NaNs; a NaN and a number have an infinite one.
double largest_distance(const Tensor& found, const Tensor& expected);

}  // namespace plexaura::onnx

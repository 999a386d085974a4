#pragma once

#include <filesystem>

#include "core/tensor/tensor.h"

namespace plexaura {

// Read and write a file of numpy with one array, of a dtype that both sides have. Arrays in Fortran's order are
// refused. Throw UserError, which names the file.
Tensor read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace plexaura

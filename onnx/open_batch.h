#pragma once

#include <string>
#include <string_view>

namespace plexaura::onnx {

// Returns an ONNX file for any number of samples. `one` and `other` are files of the same model that export_graph() has
// made for two numbers of samples. Extents in which they differ are left open; those of the batch have the name "N".
// Shapes to which values are reshaped or repeated are computed when the file runs, and constants that have the same
// elements for each sample are repeated then. Throws UserError, which names the node, if anything else differs: then the
// model can only be exported for a fixed number of samples. The two numbers should be different from all extents of the
// model, for example large primes.
std::string with_open_batch(std::string_view one, std::string_view other);

}  // namespace plexaura::onnx

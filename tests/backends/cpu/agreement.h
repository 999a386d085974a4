#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

// The fast kernels against the portable ones in double: the same graph is built twice, in float32 for the CPU
// backend and in float64 for the oracle.

namespace plexaura::testing {

// Builds a graph whose floating leaves are of the given dtype, and returns what is to be compared.
using BuildGraph = std::function<std::vector<Node>(Graph& graph, DType dtype)>;

struct Agreement {
  std::vector<double> errors;  // of each output: max |a - b| / max |b|
  std::string program;         // as printed

  double worst() const;
  bool uses(const std::string& implementation) const {
    return program.find(implementation) != std::string::npos;
  }
};

struct AgreementOptions {
  double low = -1;  // range of the inputs
  double high = 1;
  std::int64_t labels = 10;  // int64 inputs lie in [0, labels)
  Mode mode = Mode::train;
  Backend* backend = nullptr;  // null: the CPU
};

// Compiles and runs both; the inputs are drawn by name. Runs the CPU's twice and fails the test where two
// runs differ in a bit.
Agreement agreement(const BuildGraph& build, const AgreementOptions& options = {});

// One node on the CPU, its inputs in the given layouts; fails the test where the padding of an output is not
// zero. Returns the error of each output against the oracle.
Agreement agreement_of_node(const BuildGraph& build, const std::vector<Layout>& layouts,
                            const AgreementOptions& options = {});

// What the CPU backend offers for one node whose inputs come in these layouts; default: in any. For looking at, not
// for making kernels.
std::vector<Candidate> offers(const Node& node, std::vector<std::optional<Layout>> given = {});

// Whether this build has oneDNN: without it its ops fall to the portable kernels.
bool has_onednn();

Layout blocked_channels(std::int64_t block);  // of [N, C, H, W]
Layout channels_last();

// Values in [low, high) that depend on the name alone.
Tensor drawn(const TensorType& type, std::string_view name, const AgreementOptions& options = {});

}  // namespace plexaura::testing

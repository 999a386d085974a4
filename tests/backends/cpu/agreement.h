#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

// Compares the fast kernels with the portable ones in double: the same graph is built twice, in float32 (or another dtype) for
// the CPU backend and in float64 for the oracle.

namespace plexaura::testing {

// Builds a graph whose floating inputs have the given dtype, and returns the nodes to compare.
using BuildGraph = std::function<std::vector<Node>(Graph& graph, DType dtype)>;

struct Agreement {
  std::vector<double> errors;  // of each output: max |a - b| / max |b|
  std::string program;         // text of the compiled program

  double worst() const;
  bool uses(const std::string& implementation) const {
    return program.find(implementation) != std::string::npos;
  }
};

struct AgreementOptions {
  double low = -1;  // the inputs are drawn from [low, high)
  double high = 1;
  std::int64_t labels = 10;  // int64 inputs are drawn from [0, labels)
  Mode mode = Mode::train;
  Backend* backend = nullptr;       // null: the CPU backend
  DType dtype = DType::float32;     // of the graph on that backend
  std::string implementation = {};  // with agreement_of_node(): see RegionRun::Options
};

// Errors of a kernel of float64 that adds up in another order than the portable one.
constexpr double bound_of_doubles = 1e-13;

// Returns max |a - b| / max |b|. NaN equals NaN; infinite if only one of two elements is NaN.
double error_of(const Tensor& value, const Tensor& expected);

// Compiles and runs both graphs. Inputs are random and depend on their names. Runs the CPU's program twice,
// and fails the test if two runs differ in a bit.
Agreement agreement(const BuildGraph& build, const AgreementOptions& options = {});

// Runs one node on the CPU with its inputs in the given layouts. Fails the test if the padding of an output
// is not zero. Returns the error of each output against the oracle.
Agreement agreement_of_node(const BuildGraph& build, const std::vector<Layout>& layouts,
                            const AgreementOptions& options = {});

// Builds a node whose inputs are leaves, in the given dtype.
using BuildNode = std::function<Node(Graph& graph, DType dtype)>;

// Compares a node on the CPU with the portable kernel, bit by bit, for each dtype. Fails the test if the CPU has no
// fast kernel for it. NaN equals NaN.
void check_bits(const BuildNode& build, const std::vector<DType>& dtypes,
                const AgreementOptions& options = {});

extern const std::vector<DType> every_dtype;

// Returns the CPU backend's candidates for one node whose inputs have these layouts; by default, any layouts.
// The candidates must not make kernels.
std::vector<Candidate> offers(const Node& node, std::vector<std::optional<Layout>> given = {});

// Returns true if this build has oneDNN. Without it, the portable kernels compute its ops.
bool has_onednn();

Layout blocked_channels(std::int64_t block);  // the layout of [N, C, H, W] in blocks of channels
Layout channels_last();

// Returns random values in [low, high) that depend only on the name.
Tensor drawn(const TensorType& type, std::string_view name, const AgreementOptions& options = {});

}  // namespace plexaura::testing

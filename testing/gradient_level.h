#pragma once

#include <vector>

#include "testing/check_gradients.h"
#include "testing/gradient_program.h"

namespace plexaura::testing {

// Names all inputs together in an entry of the report.
inline constexpr const char* all_inputs = "all inputs";

// If a function has more inputs than this, not every subset of them is differentiated.
inline constexpr std::size_t most_inputs_with_all_subsets = 4;

// Compares the gradients of a function of the graph's inputs with differences, and adds the results to the
// report. `outputs` are the outputs of the function under test or, if `differentiated` is not empty, its
// gradients with respect to these inputs. Adds an input to the graph for the cotangent of each output.
// Returns the gradients by input; an input without a gradient has an empty node.
std::vector<Node> check_level(Graph& graph, GraphInputs& inputs, const std::vector<Node>& outputs,
                              std::vector<std::size_t> differentiated, Random& random, Backend& backend,
                              const GradientOptions& options, GradientReport& report);

}  // namespace plexaura::testing

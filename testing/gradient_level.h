#pragma once

#include <vector>

#include "testing/check_gradients.h"
#include "testing/gradient_program.h"

namespace plexaura::testing {

// What an entry of the report calls everything together.
inline constexpr const char* all_inputs = "all inputs";

// Of a function with more inputs not every set of wanted ones is checked.
inline constexpr std::size_t most_inputs_with_all_subsets = 4;

// A function of the inputs of a graph: these outputs, or, where `differentiated` names inputs, the gradients by them of
// the function under test. Compares its gradients with differences and adds what it finds to the report. Adds an input
// to the graph for each output. Returns the gradients, by input; empty where there is none.
std::vector<Node> check_level(Graph& graph, GraphInputs& inputs, const std::vector<Node>& outputs,
                              std::vector<std::size_t> differentiated, Random& random, Backend& backend,
                              const GradientOptions& options, GradientReport& report);

}  // namespace plexaura::testing

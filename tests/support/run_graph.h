#pragma once

#include <initializer_list>
#include <vector>

#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"

namespace plexaura::testing {

// Compiles a graph for the tests' backend, places the store as the program needs it, and runs once, with the
// updates of buffers. Returns the values of `outputs`.
inline std::vector<Tensor> run_graph(const Graph& graph, ParameterStore& store,
                                     std::initializer_list<Node> outputs, std::initializer_list<Feed> feeds,
                                     const StepBlock& block = {}) {
  std::vector<ProgramOutput> wanted;
  for (const Node& node : outputs) wanted.push_back({.node = node});
  const auto program = compile(graph, wanted, test_backend(), {.placement = &store.placement()});
  VM vm(program, test_backend(), {.store = &store});
  vm.run(feeds, block);
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < wanted.size(); ++i) values.push_back(vm.output(i));
  vm.wait();
  return values;
}

}  // namespace plexaura::testing

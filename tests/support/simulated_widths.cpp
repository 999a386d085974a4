#include "tests/support/simulated_widths.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "backends/registry.h"
#include "testing/run.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing {

std::map<std::string, int> widths_of(const Graph& graph, const std::vector<Node>& results,
                                     const std::vector<Tensor>& inputs, bool fuse) {
  const TemporaryFolder folder;
  const auto file = folder / "widths";
  setenv("PLEXAURA_SIMULATED_CUDA_WIDTHS", file.c_str(), 1);
  Runner(graph, results, *open_backend("simulated_cuda"), {.optimise = fuse})(inputs);
  unsetenv("PLEXAURA_SIMULATED_CUDA_WIDTHS");
  std::map<std::string, int> widths;
  std::ifstream lines(file);
  int width = 0;
  for (std::string op, place; lines >> width >> op && std::getline(lines, place);)
    widths[op] = std::max(widths[op], width);
  return widths;
}

}  // namespace plexaura::testing

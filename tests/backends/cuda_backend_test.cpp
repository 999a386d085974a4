// The plugin for CUDA on its simulated runtime.

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>

#include "backends/registry.h"
#include "core/compile/compile.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::cuda_backend_test {

namespace {

bool has_simulation() {
  const auto known = known_backends();
  return std::ranges::find(known, "simulated_cuda") != known.end();
}

std::string opened_by_rank(const char* rank, const BackendOptions& options = {}) {
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank, 1);
  const std::string description = open_backend("simulated_cuda", options)->info().description;
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  return description.substr(0, description.find(','));
}

}  // namespace

TEST_CASE("the ranks of a host take its GPUs in turn, unless they are told which") {
  if (!has_simulation()) return;  // in builds with sanitizers
  CHECK(opened_by_rank("0") == "a simulated GPU for tests");
  CHECK(opened_by_rank("1") == "the second simulated GPU for tests");
  CHECK(opened_by_rank("2") == "a simulated GPU for tests");
  CHECK(opened_by_rank("1", {{"device", "0"}}) == "a simulated GPU for tests");
  CHECK(user_error([] { open_backend("simulated_cuda:device=2"); }) ==
        "there is no GPU 2; the simulated CUDA has 2, counted from 0");
}

TEST_CASE("CUDA refuses a value with too many axes when the program is compiled") {
  if (!has_simulation()) return;  // in builds with sanitizers
  const auto backend = open_backend("simulated_cuda");
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 2, 1, 2, 1, 2, 1, 2}});
  const std::vector<ProgramOutput> allowed{{.node = sum(x, {.axes = {1, 5}})}};
  CHECK(compile(graph, allowed, *backend)->instructions.size() == 1);
  const Node wide = graph.input("wide", {DType::float32, {1, 2, 1, 2, 1, 2, 1, 2, 1}});
  const int line = __LINE__ + 1;
  const std::vector<ProgramOutput> refused{{.node = tanh(wide)}};
  const std::string text = user_error([&] { compile(graph, refused, *backend); });
  CAPTURE(text);
  CHECK(text.find("tanh %") == 0);
  CHECK(text.find("cuda_backend_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(text.find("take values of up to 8 axes, and float32[1,2,1,2,1,2,1,2,1] has 9; reshape it") !=
        std::string::npos);
}

}  // namespace plexaura::testing::cuda_backend_test

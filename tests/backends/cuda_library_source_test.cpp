// Tests how the plugin for CUDA uses NVIDIA's libraries, on its simulated runtime, whose libraries refuse
// groups.

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/normalise_image.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::cuda_library_source_test {

namespace {

constexpr const char* first_plan = "simulated library 0";
constexpr const char* second_plan = "simulated library 1";
constexpr std::size_t workspace_of_first = 1000;

// Returns null in builds with sanitizers.
std::unique_ptr<Backend> open_simulation(const BackendOptions& options = {}) {
  const auto known = known_backends();
  const bool has_simulation = std::ranges::find(known, "simulated_cuda") != known.end();
  return has_simulation ? open_backend("simulated_cuda", options) : nullptr;
}

Node input(Graph& graph, const Shape& shape, DType dtype = DType::float32) {
  return graph.input("x" + std::to_string(graph.size()), {dtype, shape});
}

std::vector<Candidate> candidates_for(const Backend& backend, const Node& node) {
  const Region region = single(node.graph(), node.id());
  RegionQuery query{node.graph(), region, {}, {true}};
  query.given.resize(region.inputs.size());
  return backend.propose(query);
}

std::vector<std::string> offered(const Backend& backend, const Node& node) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates_for(backend, node)) names.push_back(candidate.implementation);
  return names;
}

using Names = std::vector<std::string>;
const Names both{first_plan, second_plan, "cuda"};
const Names own{"cuda"};
const Names both_in_two_layouts{first_plan, second_plan, first_plan, second_plan, "cuda"};
const Layout channels_last({0, 2, 3, 1});
const Layout padded({0, 2, 3, 1}, {{1, 8}});

enum Status { computed, failed_on_device };

// Returns the exit status of a process that runs a product by the first plan with this much scratch memory.
// It is a separate process, because a device cannot be used after a failure.
int status_of_product(Backend& backend, std::size_t bytes_of_scratch) {
  const pid_t child = fork();
  if (child == 0) {
    Graph graph;
    const Node product = matmul(input(graph, {8, 8}), input(graph, {8, 8}));
    constexpr std::size_t bytes_of_matrix = 8UL * 8 * 4;
    const auto operand = backend.allocate(bytes_of_matrix, MemoryUse::device);
    const auto result = backend.allocate(bytes_of_matrix, MemoryUse::device);
    const auto scratch = backend.allocate(bytes_of_scratch, MemoryUse::device);
    const std::string name = "matmul %2";
    const auto launch =
        candidates_for(backend, product)[0].make()->bind({.inputs = {operand->address(), operand->address()},
                                                          .outputs = {result->address()},
                                                          .workspace = scratch->address(),
                                                          .name = &name});
    launch->run();
    const auto done = backend.make_event();
    done->record(Stream::compute);
    try {
      done->wait();
    } catch (const DeviceError&) {
      _exit(failed_on_device);
    }
    _exit(computed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("CUDA's libraries are offered before the plugin's own kernel") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node product = matmul(input(graph, {2, 3, 4}), input(graph, {2, 4, 5}));
  const auto candidates = candidates_for(*backend, product);
  REQUIRE(offered(*backend, product) == both);
  CHECK(candidates[0].seconds < candidates[2].seconds);
  CHECK_FALSE(candidates[1].has_estimate());
  for (const DType dtype : {DType::float64, DType::bfloat16, DType::float16}) {
    const Node x = input(graph, {1, 2, 5, 5}, dtype);
    const Node weights = input(graph, {3, 2, 3, 3}, dtype);
    const Node y = conv2d(x, weights, {.padding = {1, 1}});
    const bool wide = dtype == DType::float64;
    const Names& of_few_channels = wide ? both : both_in_two_layouts;
    CHECK(offered(*backend, y) == of_few_channels);
    CHECK(offered(*backend, conv2d_weight_grad(x, y, {3, 3}, {.padding = {1, 1}})) == of_few_channels);
    CHECK(offered(*backend, conv2d_input_grad(weights, y, {5, 5}, {.padding = {1, 1}})) == both);
  }
}

TEST_CASE("CUDA's libraries take images channels last where tensor cores compute") {
  Graph graph;
  const auto convolution = [&](DType dtype) {
    return conv2d(input(graph, {8, 16, 9, 9}, dtype), input(graph, {32, 16, 3, 3}, dtype));
  };
  const auto strict = open_simulation();
  if (!strict) return;
  const auto rounding = open_simulation({{"tf32", "1"}});
  for (const auto& [backend, dtype] :
       {std::pair(strict.get(), DType::bfloat16), std::pair(strict.get(), DType::float16),
        std::pair(rounding.get(), DType::float32)}) {
    const auto candidates = candidates_for(*backend, convolution(dtype));
    // The last candidate is the plugin's own kernel.
    REQUIRE(candidates.size() == 3);
    CHECK(candidates[0].inputs == std::vector{channels_last, channels_last});
    CHECK(candidates[0].outputs == std::vector{channels_last});
    CHECK(candidates[2].outputs[0].is_row_major());
  }
  CHECK(offered(*strict, convolution(DType::float32)) == both);
  CHECK(offered(*rounding, convolution(DType::float64)) == both);
}

TEST_CASE("CUDA's libraries take row-major images for tensor cores where they refuse others") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node x = input(graph, {8, 16, 9, 9}, DType::bfloat16);
  const auto candidates = candidates_for(
      *backend, conv2d(x, input(graph, {32, 16, 3, 3}, DType::bfloat16), {.dilation = {2, 2}}));
  REQUIRE(candidates.size() == 3);
  CHECK(candidates[0].implementation == first_plan);
  CHECK(candidates[0].inputs[0].is_row_major());
  CHECK(candidates[0].outputs[0].is_row_major());
}

TEST_CASE("CUDA's libraries take images of few channels padded to eight, in 16 bits") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Node x = input(graph, {8, 3, 90, 90}, dtype);
    const Node weights = input(graph, {32, 3, 3, 3}, dtype);
    const Node y = conv2d(x, weights);
    const auto forward = candidates_for(*backend, y);
    REQUIRE(forward.size() >= 4);
    CHECK(forward[2].inputs == std::vector{padded, padded});
    CHECK(forward[2].outputs == std::vector{channels_last});
    CHECK(forward[2].seconds < forward[0].seconds);
    const auto backward = candidates_for(*backend, conv2d_weight_grad(x, y, {3, 3}, {}));
    REQUIRE(backward.size() >= 4);
    CHECK(backward[2].inputs == std::vector{padded, channels_last});
    CHECK(backward[2].outputs == std::vector{padded});
    CHECK(backward[2].seconds < backward[0].seconds);
  }
  const Node eight =
      conv2d(input(graph, {1, 8, 5, 5}, DType::bfloat16), input(graph, {3, 8, 3, 3}, DType::bfloat16));
  CHECK(offered(*backend, eight) == both);
  const Node single = conv2d(input(graph, {1, 3, 5, 5}), input(graph, {3, 3, 3, 3}));
  CHECK(offered(*open_simulation({{"tf32", "1"}}), single) == both);
}

// A net in mixed precision whose first convolution reads pixels of three channels, and the gradients of its
// weights.
namespace {

struct Stem {
  Stem(DType narrow, const NormaliseImageOptions& options) {
    pixels = graph.input("pixels", {DType::uint8, {2, 3, 17, 17}});
    first = graph.input("first", {DType::float32, {16, 3, 7, 7}});
    second = graph.input("second", {DType::float32, {16, 16, 3, 3}});
    const Node images = cast(normalise_image(pixels, options), narrow);
    const Node inner = relu(conv2d(images, cast(first, narrow), {.stride = {2, 2}, .padding = {3, 3}}));
    const Node y = cast(conv2d(inner, cast(second, narrow)), DType::float32);
    results = gradients(sum(y * y), {first, second});
    results.push_back(y);
  }

  std::vector<Tensor> run(Backend& backend) const {
    Runner runner(graph, results, backend, {.keep_all = true});
    auto found = runner({pattern(pixels.shape(), 37, 11, 256, 0, 1).cast(DType::uint8),
                         pattern(first.shape()).cast(DType::float32),
                         pattern(second.shape(), 7).cast(DType::float32)});
    CHECK(runner.padding().failures == "");
    return found;
  }

  Graph graph;
  Node pixels;
  Node first;
  Node second;
  std::vector<Node> results;
};

}  // namespace

TEST_CASE("pixels lie padded for CUDA's first convolution and for its gradient, whose results are the same") {
  const auto backend = open_simulation();
  if (!backend) return;
  for (const DType narrow : {DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(narrow));
    const Stem stem(narrow, {.scale = {{0.5, 0.4, 0.3}, {0.2, 0.3, 0.4}}});
    std::vector<ProgramOutput> outputs;
    for (const Node& node : stem.results) outputs.push_back({.node = node});
    const auto program = compile(stem.graph, outputs, *backend);
    const std::string text = program->to_text();
    CAPTURE(text);
    CHECK(text.find("[2,3,17,17] acdB8b") != std::string::npos);
    // Reorders of both weights that are fed, of y for its sum, and of y's gradient.
    CHECK(program->reorders == 4);
    const auto found = stem.run(*backend);
    const auto expected = stem.run(*open_backend("portable"));
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == expected[i]);
  }
}

TEST_CASE("a kernel of CUDA's plugin that takes long stands in for its libraries alone") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node x = input(graph, {32, 64, 56, 56});
  CHECK(offered(*backend, conv2d(x, input(graph, {64, 64, 3, 3}))) == Names{first_plan, second_plan});
  CHECK(offered(*backend, conv2d(x, input(graph, {64, 32, 3, 3}), {.groups = 2})) == own);
}

TEST_CASE("a convolution and its gradients are estimated alike for CUDA") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node x = input(graph, {7, 2, 5, 5});
  const Node weights = input(graph, {3, 2, 3, 3});
  const Node y = conv2d(x, weights);
  const auto seconds = [&](const Node& node) { return candidates_for(*backend, node).back().seconds; };
  CHECK(seconds(conv2d_input_grad(weights, y, {5, 5}, {})) == seconds(y));
  CHECK(seconds(conv2d_weight_grad(x, y, {3, 3}, {})) == seconds(y));
}

TEST_CASE("what CUDA's libraries refuse is left to the plugin's own kernel") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  CHECK(offered(*backend, conv2d(input(graph, {1, 4, 4, 4}), input(graph, {4, 2, 2, 2}), {.groups = 2})) ==
        own);
  CHECK(offered(*backend, conv2d(input(graph, {0, 4, 4, 4}), input(graph, {4, 4, 2, 2}))) == own);
  CHECK(offered(*backend, matmul(input(graph, {3, 0}), input(graph, {0, 5}))) == own);
  // These operands are neither one matrix nor consecutive matrices.
  CHECK(offered(*backend, matmul(input(graph, {2, 1, 3, 4}), input(graph, {3, 4, 5}))) == own);
  CHECK(offered(*backend, matmul(input(graph, {2, 1, 3, 4}), input(graph, {2, 7, 4, 5}))) == own);
  // More axes than any kernel supports.
  const Node wide = matmul(input(graph, {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 3}),
                           input(graph, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 3}));
  CHECK_THROWS_AS(offered(*backend, wide), UserError);
  // A single matrix, used for all products, counts as one.
  CHECK(offered(*backend, matmul(input(graph, {6, 3, 4}), input(graph, {4, 5}))) == both);
  CHECK(offered(*backend,
                matmul(input(graph, {1, 4, 3}), input(graph, {2, 3, 4, 5}), {.transpose_a = true})) == both);
  CHECK(offered(*backend, tanh(input(graph, {3}))) == own);
}

TEST_CASE("CUDA's libraries add a bias to a product") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node x = input(graph, {2, 3, 4}, DType::float64);
  const Node weights = input(graph, {4, 5}, DType::float64);
  const Node bias = input(graph, {5}, DType::float64);
  const Node y = matmul(x, weights) + bias;
  const std::vector<ProgramOutput> outputs{{.node = y}};
  const auto program = compile(graph, outputs, *backend);
  REQUIRE(program->instructions.size() == 1);
  CHECK(program->instructions[0].implementation == first_plan);
  const std::vector<Tensor> values{pattern(x.shape()), pattern(weights.shape()), pattern(bias.shape())};
  const auto found = Runner(graph, {y}, *backend)(values);
  const auto expected = Runner(graph, {y}, *open_backend("portable"))(values);
  CHECK(found[0].to_doubles() == expected[0].to_doubles());
}

TEST_CASE("scratch memory for CUDA's libraries is planned with all other memory") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node product = matmul(input(graph, {8, 8}), input(graph, {8, 8}));
  const std::vector<ProgramOutput> outputs{{.node = product}};
  const auto program = compile(graph, outputs, *backend);
  REQUIRE(program->instructions.size() == 1);
  const Instruction& instruction = program->instructions[0];
  CHECK(instruction.implementation == first_plan);
  // An arena aligns to 64 bytes, but the libraries need 256.
  CHECK(instruction.workspace_bytes == workspace_of_first + 192);
  CHECK(candidates_for(*backend, product)[1].make()->workspace() == 0);
}

TEST_CASE("the simulation of CUDA's libraries finds scratch memory that is too small") {
  const auto backend = open_simulation();
  if (!backend) return;
  CHECK(status_of_product(*backend, 2 * workspace_of_first) == computed);
  CHECK(status_of_product(*backend, workspace_of_first / 2) == failed_on_device);
}

TEST_CASE("work that CUDA's libraries do not take names its node") {
  const auto backend = open_simulation();
  if (!backend) return;
  Graph graph;
  const Node one = input(graph, {1, 1});
  const Node product = matmul(one, input(graph, {1, 1001}));
  Runner run(graph, {product}, *backend);
  const std::string text = device_error([&] {
    run({Tensor({DType::float32, {1, 1}}), Tensor({DType::float32, {1, 1001}})});
  });
  CAPTURE(text);
  CHECK(text.find("matmul %2 of tests/backends/cuda_library_source_test.cpp:") == 0);
  CHECK(text.find(": the simulated library fails") != std::string::npos);
}

TEST_CASE("CUDA's libraries round float32 to TF32 only where they are told to") {
  const auto strict = open_simulation();
  if (!strict) return;
  const auto rounding = open_simulation({{"tf32", "1"}});
  CHECK(strict->info().description == "a simulated GPU for tests, simulated libraries");
  CHECK(rounding->info().description == "a simulated GPU for tests, simulated libraries with TF32");
  CHECK(strict->info().kind != rounding->info().kind);
  CHECK(open_simulation({{"tf32", "0"}})->info().kind == strict->info().kind);
  CHECK(user_error([] {
          open_simulation({{"tf32", "yes"}});
        }) == "the option 'tf32' of the backend 'cuda' is 'yes'; it must be 0 or 1");
}

}  // namespace plexaura::testing::cuda_library_source_test

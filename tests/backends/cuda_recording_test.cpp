// Tests recordings of CUDA whose kernels run in parallel, on its simulated runtime, which reports a kernel
// that writes memory another kernel uses if the graph does not order the two.

#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/own_process.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::cuda_recording_test {

namespace {

// Three convolutions with batch norm and other ops around them, and the gradients of all weights.
struct Net {
  explicit Net(std::int64_t side) {
    const auto input = [&](const char* name, const Shape& shape) {
      return inputs.emplace_back(graph.input(name, {DType::float32, shape}));
    };
    const Node x = input("x", {2, 3, side, side});
    std::vector<Node> weights;
    Node y = x;
    for (const char* const name : {"first", "second", "third"}) {
      const std::int64_t channels = y.shape()[1];
      const std::string layer = name;
      weights.push_back(input(name, {4, channels, 3, 3}));
      const Node scale = input((layer + ".scale").c_str(), {4});
      const Node shift = input((layer + ".shift").c_str(), {4});
      weights.insert(weights.end(), {scale, shift});
      y = relu(batch_norm(conv2d(y, weights[weights.size() - 3], {.padding = {1, 1}}), scale, shift).y);
    }
    results = gradients(sum(y * y * input("target", y.shape())), weights);
  }

  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> results;
};

std::vector<Tensor> values_of(const std::vector<Node>& inputs, double factor) {
  std::vector<Tensor> values;
  for (const Node& node : inputs) {
    Tensor value = pattern(node.shape()).cast(DType::float32);
    for (float& element : value.as<float>()) element *= static_cast<float>(factor);
    values.push_back(value);
  }
  return values;
}

void check_bits(const Graph& graph, const std::vector<Node>& inputs, const std::vector<Node>& results) {
  const auto beside = open_backend("simulated_cuda");
  const auto one_by_one = open_backend("simulated_cuda", {{"branches", "0"}});
  Runner found(graph, results, *beside);
  Runner expected(graph, results, *one_by_one);
  for (int i = 1; i <= 24; ++i) {  // enough runs to choose a graph for each slot
    CAPTURE(i);
    REQUIRE(found(values_of(inputs, 0.1 * i)) == expected(values_of(inputs, 0.1 * i)));
  }
}

// Returns the error of two runs, one from each slot, if the event with this number has no effect in captures.
// Returns "" if there is none.
std::string what_ends_without(int hold) {
  return what_ends([&] {
    setenv("PLEXAURA_SIMULATED_CUDA_FORGETS", std::to_string(hold).c_str(), 1);
    const auto backend = open_backend("simulated_cuda");
    const Net net(16);
    Runner run(net.graph, net.results, *backend);
    for (int i = 1; i <= 2; ++i) run(values_of(net.inputs, i));
  });
}

}  // namespace

TEST_CASE("kernels that run side by side give the bits of those that run one after the other") {
  if (!has_simulated_cuda()) return;
  // For smaller images the plan reuses memory at once, including scratch memory.
  for (const std::int64_t side : {8, 16}) {
    const Net net(side);
    check_bits(net.graph, net.inputs, net.results);
  }
}

TEST_CASE("kernels that run side by side have counters of their own") {
  if (!has_simulated_cuda()) return;
  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> results;
  for (const std::string name : {"first", "second"}) {
    // So many elements that several blocks compute one sum.
    for (const auto& [part, shape] :
         {std::pair(".x", Shape{2, 3, 96, 96}), std::pair(".scale", Shape{3}), std::pair(".shift", Shape{3})})
      inputs.push_back(graph.input(name + part, {DType::float32, shape}));
    results.push_back(batch_norm(inputs[inputs.size() - 3], inputs[inputs.size() - 2], inputs.back()).y);
  }
  // A large value, after which the plan gives each kernel its own scratch memory.
  results.push_back(sum(tanh(inputs.emplace_back(graph.input("large", {DType::float32, {2, 3, 160, 160}})))));
  check_bits(graph, inputs, results);
}

TEST_CASE("each event between kernels that run side by side is needed: a recording without it is found") {
  if (!has_simulated_cuda()) return;
  int held = 0;
  int races = 0;
  for (std::string words; !(words = what_ends_without(held + 1)).empty(); ++held) {
    CAPTURE(held);
    CAPTURE(words);
    const bool races_now =
        words.find(" race for memory: nothing in the graph orders them") != std::string::npos;
    const bool joins = words.find("a stream was not joined") != std::string::npos;
    const bool forks = words.find("work on a stream that is not captured") != std::string::npos;
    CHECK((races_now || joins || forks));
    races += races_now ? 1 : 0;
  }
  MESSAGE(held << " events, of which " << races << " are missed by kernels");
  CHECK(held >= 8);
  CHECK(races >= 4);
  // there are no further events
  for (int more = 2; more < 10; ++more) CHECK(what_ends_without(held + more).empty());
}

}  // namespace plexaura::testing::cuda_recording_test

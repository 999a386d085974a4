// Tests the plugin for CUDA on its simulated runtime.

#include <cstdlib>
#include <doctest/doctest.h>
#include <string>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/gather.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/error_text.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/layout_backend.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::cuda_backend_test {

namespace {

std::string opened_by_rank(const char* rank, const BackendOptions& options = {}) {
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank, 1);
  const std::string description = open_backend("simulated_cuda", options)->info().description;
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  return description.substr(0, description.find(','));
}

// The uses around a batch norm: an addend after it, which gets the masked gradient; another use of x; a
// second use of the result, so that its gradient is a sum.
struct Around {
  bool adds = false;
  bool forks = false;
  bool sums = false;
};

// A batch norm and its gradients.
struct Layer {
  Layer(DType dtype, const Around& around, const Shape& shape = {3, 5, 7, 6}) {
    const auto input = [&](const char* name, const Shape& shape, DType of) {
      return inputs.emplace_back(graph.input(name, {of, shape}));
    };
    const DType statistic = dtype == DType::float64 ? dtype : DType::float32;
    const Node x = input("x", shape, dtype);
    const Node scale = input("scale", {shape[1]}, statistic);
    const Node shift = input("shift", {shape[1]}, statistic);
    const BatchNormResult normal = batch_norm(x, scale, shift);
    const Node y = relu(around.adds ? normal.y + input("addend", shape, dtype) : normal.y);
    Node loss = sum(y * input("grad", shape, dtype));
    if (around.forks) loss = loss + sum(tanh(x));
    if (around.sums) loss = loss + sum(avg_pool2d(y, {.kernel = {2, 2}}));
    std::vector<Node> wanted{x, scale, shift};
    if (around.adds) wanted.push_back(inputs[3]);
    results = gradients(loss, wanted);
    results.insert(results.end(), {y, normal.mean, normal.variance});
  }

  std::vector<Tensor> run(Backend& backend, bool optimise) {
    std::vector<Tensor> values;
    for (const Node& node : inputs) values.push_back(pattern(node.shape()).cast(node.type().dtype));
    return Runner(graph, results, backend, {.optimise = optimise})(values);
  }

  // Returns how many nodes each kernel of the batch norm computes.
  std::vector<std::size_t> regions(Backend& backend) const {
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    std::vector<std::size_t> sizes;
    const auto program = compile(graph, outputs, backend);
    for (const Instruction& instruction : program->instructions)
      if (instruction.name.find("+normalise") != std::string::npos ||
          instruction.name.find("(normalise") != std::string::npos)
        sizes.push_back(instruction.nodes.size());
    return sizes;
  }

  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> results;
};

}  // namespace

TEST_CASE("the ranks of a host take its GPUs in turn, unless they are told which") {
  if (!has_simulated_cuda()) return;
  CHECK(opened_by_rank("0") == "a simulated GPU for tests");
  CHECK(opened_by_rank("1") == "the second simulated GPU for tests");
  CHECK(opened_by_rank("2") == "a simulated GPU for tests");
  CHECK(opened_by_rank("1", {{"device", "0"}}) == "a simulated GPU for tests");
  CHECK(user_error([] { open_backend("simulated_cuda:device=2"); }) ==
        "there is no GPU 2; the simulated CUDA has 2, counted from 0");
  CHECK(user_error([] { open_backend("simulated_cuda:device=1x"); }) ==
        "the option 'device' of the backend 'cuda' is '1x'; it must be the number of a GPU, from 0");
}

TEST_CASE("times of CUDA's kernels hold for these kernels alone") {
  if (!has_simulated_cuda()) return;
  CHECK(open_backend("simulated_cuda")->info().build.size() == 16);
  CHECK(open_backend("simulated_cuda")->info().build != open_backend("cpu")->info().build);
}

TEST_CASE("CUDA refuses a value with too many axes when the program is compiled") {
  if (!has_simulated_cuda()) return;
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

TEST_CASE("images for tensor cores stay channels last on CUDA from convolution to convolution") {
  if (!has_simulated_cuda()) return;
  const auto backend = open_backend("simulated_cuda", {{"tf32", "1"}});
  Graph graph;
  const auto input = [&](const char* name, const Shape& shape) {
    return graph.input(name, {DType::float32, shape});
  };
  const Node x = input("x", {2, 3, 12, 12});
  const Node first = input("first", {16, 3, 3, 3});
  const Node second = input("second", {16, 16, 3, 3});
  const Node scale = input("scale", {16});
  const Node shift = input("shift", {16});
  const Node images = relu(batch_norm(conv2d(x, first, {.padding = {1, 1}}), scale, shift).y);
  const Node pooled = max_pool2d(images + 0.5 * images, {.kernel = {2, 2}});
  const Node y = conv2d(pooled, second);
  const std::vector<Node> grads = gradients(sum(y * y), {first, second, scale, shift});
  const std::vector<ProgramOutput> outputs{
      {.node = grads[0]}, {.node = grads[1]}, {.node = grads[2]}, {.node = grads[3]}};
  const auto program = compile(graph, outputs, *backend);
  // Reorders of the images and the weights that are fed, of y for its sum, and of y's gradient.
  INFO(program->to_text());
  CHECK(program->reorders == 5);

  std::vector<Tensor> values;
  for (const Node& node : {x, first, second, scale, shift})
    values.push_back(pattern(node.shape()).cast(DType::float32));
  const auto found = Runner(graph, grads, *backend)(values);
  const auto expected = Runner(graph, grads, *open_backend("portable"))(values);
  for (std::size_t i = 0; i < grads.size(); ++i) CHECK(error_of(found[i], expected[i]) < 1e-6);
}

TEST_CASE("regions of batch norm on CUDA give the bits of their ops") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  const auto check = [](Backend& backend, DType dtype, int bits, const Shape& shape) {
    const Around around{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    CAPTURE(name_of(dtype));
    CAPTURE(bits);
    Layer layer(dtype, around, shape);
    // Forward: moments, normalise, perhaps add, and relu. Backward: perhaps the sum of two gradients, the
    // mask, both gradients, and perhaps their sum with the gradient of another use.
    const std::size_t backward = 5U + (around.forks ? 1 : 0) + (around.sums ? 1 : 0);
    CHECK(layer.regions(backend) == std::vector<std::size_t>{around.adds ? 4U : 3U, backward});
    const auto together = layer.run(backend, true);
    const auto one_by_one = layer.run(backend, false);
    for (std::size_t i = 0; i < together.size(); ++i) {
      CAPTURE(i);
      CHECK(together[i].to_doubles() == one_by_one[i].to_doubles());
    }
  };
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(*cuda, layout_of);
    for (int bits = 0; bits < 8; ++bits) {
      for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
        check(backend, dtype, bits, {3, 5, 7, 6});
      check(backend, DType::bfloat16, bits, {2, 5, 32, 33});
      for (const DType dtype : {DType::float32, DType::bfloat16})  // a thread computes several channels
        check(backend, dtype, bits, {3, 16, 6, 6});
    }
  }
}

TEST_CASE("sums over channels on CUDA that are cut into parts are finished, in every run") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  const auto portable = open_backend("portable");
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(*cuda, layout_of);
    // More channels than a block handles at once; as many elements as two blocks handle; planes that fill one
    // block.
    for (const Shape& shape : {Shape{3, 40, 20, 20}, Shape{2, 3, 96, 96}, Shape{4, 128, 18, 15}}) {
      Layer layer(DType::float64, {.adds = true, .sums = true}, shape);
      const auto expected = layer.run(*portable, true);
      for (int run = 0; run < 2; ++run) {
        const auto found = layer.run(backend, true);
        for (std::size_t i = 0; i < found.size(); ++i) {
          CAPTURE(i);
          CAPTURE(to_string(shape));
          check_close(found[i], expected[i].to_doubles(), 1e-9);
        }
      }
    }
  }
}

TEST_CASE("the gradient of gather on CUDA takes many indices, in their order") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  struct Case {
    std::int64_t extent, count;
    std::int64_t behind = 2;  // number of elements of a row
  };
  // Index ranges that the sort handles in one, two and three digits; counts of one chunk and of many; rows that
  // threads add up by groups, and more groups than a block has threads.
  for (const auto& [extent, count, behind] :
       {Case{3, 5}, Case{200, 1000}, Case{50'000, 50'000}, Case{70'000, 300}, Case{70'000, 0},
        Case{50, 90, 24}, Case{5, 9, 2056}, Case{5, 9, 300}}) {
    CAPTURE(extent);
    CAPTURE(count);
    CAPTURE(behind);
    Graph graph;
    const Node grad = graph.input("grad", {DType::float16, {count, behind}});
    const Node indices = graph.input("indices", {DType::int64, {count}});
    Tensor of(indices.type());
    // A few rows occur repeatedly, and their sum is rounded at each addition.
    std::int64_t next = 1;
    for (std::int64_t& index : of.as<std::int64_t>()) {
      next = next * 48271 % 2147483647;
      index = next % 7 == 0 ? extent / 2 : next % extent;
    }
    const std::vector<Tensor> values{pattern(grad.shape()).cast(DType::float16), of};
    const std::vector<Node> result{gather_grad(grad, indices, extent)};
    CHECK(Runner(graph, result, *cuda)(values)[0] ==
          Runner(graph, result, *open_backend("portable"))(values)[0]);
  }
}

TEST_CASE("sums and means on CUDA take images that lie channels last") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  LayoutBackend backend(*cuda, in_channels_last);
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 5, 9, 11}});
  std::vector<Node> results;
  for (const std::vector<std::int64_t>& axes : std::vector<std::vector<std::int64_t>>{
           {0}, {1}, {3}, {2, 3}, {0, 2, 3}, {0, 1}, {1, 2, 3}, {0, 1, 2, 3}})
    for (const bool keepdims : {false, true}) {
      results.push_back(sum(x, {.axes = axes, .keepdims = keepdims}));
      results.push_back(mean(x, {.axes = axes, .keepdims = keepdims}));
    }
  const std::vector<Tensor> values{pattern(x.shape())};
  const auto found = Runner(graph, results, backend)(values);
  const auto expected = Runner(graph, results, *open_backend("portable"))(values);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    check_close(found[i], expected[i].to_doubles(), 1e-12);
  }
}

}  // namespace plexaura::testing::cuda_backend_test

// Tests regions of elementwise ops around slices: the results have the same bits as those of the ops one by one.

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"

// Null in builds without OpenMP, such as that with the thread sanitizer.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::row_chain_regions_test {

namespace {

const std::vector<DType> floating{DType::float32, DType::float64, DType::bfloat16, DType::float16};

Node part(const Node& x, std::int64_t start, std::int64_t stop) {
  return slice(x, {.axis = -1, .start = start, .stop = stop});
}

// A graph with random inputs.
struct Net {
  Node input(const std::string& name, const TensorType& type) {
    feeds.push_back(drawn(type, name));
    return graph.input(name, type);
  }

  std::vector<Tensor> run(bool optimise) const {
    return Runner(graph, results, *backend, {.optimise = optimise})(feeds);
  }
  void check_bits() const { CHECK(run(true) == run(false)); }

  // Returns the number of nodes of each chain.
  std::vector<std::size_t> chains() const {
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    std::vector<std::size_t> sizes;
    const std::shared_ptr<const Program> program = compile(graph, outputs, *backend);
    for (const Instruction& instruction : program->instructions)
      if (instruction.name.find("row chain of") != std::string::npos)
        sizes.push_back(instruction.nodes.size());
    return sizes;
  }

  std::shared_ptr<Backend> backend = make_cpu_backend();
  Graph graph;
  std::vector<Tensor> feeds;
  std::vector<Node> results;
};

// A cell of an LSTM and its gradient.
void append_cell(Net& net, DType dtype, const Shape& rows, std::int64_t hidden) {
  const auto type = [&](std::int64_t columns) {
    std::vector<std::int64_t> extents = rows.extents();
    extents.push_back(columns);
    return TensorType{dtype, Shape(extents)};
  };
  const Node x = net.input("x", type(4 * hidden));
  const Node recurrent = net.input("recurrent", type(4 * hidden));
  const Node bias = net.input("bias", {dtype, {4 * hidden}});
  const Node before = net.input("c", type(hidden));
  const Node all = x + recurrent + bias;
  const auto gate = [&](std::int64_t number) { return part(all, number * hidden, (number + 1) * hidden); };
  const Node c = sigmoid(gate(1)) * before + sigmoid(gate(0)) * tanh(gate(2));
  const Node h = sigmoid(gate(3)) * tanh(c);
  net.results = {h, c};
  const std::vector<Node> grads{net.input("grad h", type(hidden)), net.input("grad c", type(hidden))};
  for (const Node& found : vjp(std::vector{h, c}, grads, std::vector{x, before}))
    net.results.push_back(found);
}

// Returns a random op on values of the type of `columns`. The operands `stretched` have fewer rows or columns.
Node random_step(std::mt19937& random, const std::vector<Node>& of, std::int64_t columns,
                 const std::vector<Node>& stretched) {
  const auto any = [&] { return of[random() % of.size()]; };
  const auto any_stretched = [&] { return stretched[random() % stretched.size()]; };
  const auto half = columns / 2;
  const auto last_part = [&] {
    return slice_grad(part(any(), half, columns), columns, {.axis = -1, .start = half, .stop = columns});
  };
  switch (random() % 11) {
    case 0:
      return any() + any();
    case 1:
      return any() * any_stretched();
    case 2:
      return where(gt(any(), any_stretched()), any(), 0.5);
    case 3:
      return slice_grad(part(any(), half, columns), columns,
                        {.axis = -1, .start = 0, .stop = columns - half});
    case 4:
      return slice_grad(part(any(), 0, half), columns, {.axis = -1, .start = 0, .stop = half}) +
             slice_grad(part(any(), 0, columns - half), columns,
                        {.axis = -1, .start = half, .stop = columns});
    case 5:
      return part(any(), 1, 2) - any();
    case 6:
      return 1 - any();
    case 7:
      return slice_grad(part(any(), 2, 3), 1, {.axis = -1, .start = 0, .stop = 1}) + last_part();
    case 8:
      return any_stretched() + last_part();
    case 9:
      return tanh(part(any(), 2, 3) * 2) + any_stretched() + any();
    default:
      return tanh(any());
  }
}

}  // namespace

TEST_CASE("a chain has the bits of its ops: the cell of an LSTM and its gradient, in every dtype") {
  for (const DType dtype : floating)
    for (const auto& [rows, hidden] : std::vector<std::pair<Shape, std::int64_t>>{
             {{64}, 128}, {{7}, 33}, {{3, 5}, 16}, {{1}, 20}, {{2}, 1000}}) {
      CAPTURE(name_of(dtype));
      CAPTURE(hidden);
      Net net;
      append_cell(net, dtype, rows, hidden);
      CHECK_FALSE(net.chains().empty());
      net.check_bits();
    }
}

TEST_CASE("a chain computes the gates of a cell, and one their gradient") {
  Net net;
  append_cell(net, DType::float32, {64}, 128);
  const std::vector<std::size_t> chains = net.chains();
  std::size_t ops = 0;
  for (const std::size_t size : chains) ops += size;
  CHECK(chains.size() <= 2);
  CHECK(ops >= 40);
}

TEST_CASE("random chains have the bits of their ops") {
  std::size_t chains = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Net net;
    const DType dtype = floating[seed % floating.size()];
    const std::int64_t columns = 32 + static_cast<std::int64_t>(random() % 40);
    const bool has_three_axes = random() % 2 == 0;
    const auto input = [&](const char* name, std::int64_t first, std::int64_t second, std::int64_t last) {
      return net.input(name,
                       {dtype, has_three_axes ? Shape{first, second, last} : Shape{first * second, last}});
    };
    std::vector<Node> values;
    for (const char* name : {"a", "b", "c"}) values.push_back(input(name, 3, 5, columns));
    std::vector<Node> stretched{net.input("columns", {dtype, {columns}}), net.input("scalar", {dtype, {}}),
                                input("row", 1, 1, columns), input("column", 3, 5, 1)};
    if (has_three_axes)
      for (const auto& [first, second] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 5}, {3, 1}})
        stretched.push_back(input(first == 1 ? "second axis" : "first axis", first, second, columns));
    values.push_back(values[0] * stretched[3]);
    for (int step = 0; step < 14; ++step) values.push_back(random_step(random, values, columns, stretched));
    net.results = {values.back(), values[values.size() - 4], part(values[values.size() - 2], 3, 20)};
    chains += net.chains().size();
    net.check_bits();
  }
  CHECK(chains > 40);
}

TEST_CASE("a chain adds the gradient of a column to all columns of another gradient") {
  Net net;
  const Node u = net.input("u", {DType::float32, {64, 1}});
  const Node v = net.input("v", {DType::float32, {64, 1024}});
  const Node loss = sum(tanh(part(u, 0, 1) * 3)) + sum(tanh(part(v, 256, 768)));
  const std::vector<Node> found = gradients(loss, std::vector{u, v});
  net.results = {tanh(found[0] + found[1]) * 2};
  CHECK_FALSE(net.chains().empty());
  net.check_bits();
}

TEST_CASE("a chain keeps zeros, infinities and NaN as its ops do") {
  const float infinity = std::numeric_limits<float>::infinity();
  Net net;
  const Node a = net.input("a", {DType::float32, {2, 4}});
  const Node b = net.input("b", {DType::float32, {2, 4}});
  const Node x = -a;
  const Node y = b * 1.5;
  net.results = {slice_grad(x, 8, {.axis = 1, .start = 0, .stop = 4}) +
                     slice_grad(y, 8, {.axis = 1, .start = 4, .stop = 8}),
                 slice_grad(x, 6, {.axis = 1, .start = 1, .stop = 5})};
  net.feeds = {Tensor::of<float>({2, 4}, {0, -0.F, 1e-40F, infinity, 1, -1, NAN, 3}),
               Tensor::of<float>({2, 4}, {-0.F, 0, -infinity, 2, -1e-41F, 0, 1, NAN})};
  CHECK_FALSE(net.chains().empty());
  net.check_bits();
}

TEST_CASE("a chain stops at an op that reads its results and feeds it") {
  Net net;
  const Node x = net.input("x", {DType::float32, {16, 96}});
  const Node w = net.input("w", {DType::float32, {32, 32}});
  const Node h = net.input("h", {DType::float32, {16, 32}});
  const Node reset = sigmoid(part(x, 0, 32) + h);
  const Node update = sigmoid(part(x, 32, 64) - h);
  const Node candidate = tanh(part(x, 64, 96) + matmul(reset * h, w));
  net.results = {(1 - update) * candidate + update * reset};
  CHECK(net.chains().size() == 2);  // before and after the product
  net.check_bits();
}

TEST_CASE("ops without slices, on short rows and on other axes are no chain") {
  const auto chains = [](const Shape& shape, const std::function<Node(const Node&)>& build) {
    Net net;
    net.results = {build(net.input("x", {DType::float32, shape}))};
    net.check_bits();
    return net.chains().size();
  };
  const auto along = [](std::int64_t axis) {
    return [axis](const Node& x) { return tanh(slice(x, {.axis = axis, .start = 0, .stop = 2}) * 2) + 1; };
  };
  CHECK(chains({64, 128}, [](const Node& x) { return tanh(x * 2) + 1; }) == 0);
  CHECK(chains({64, 128}, along(0)) == 0);
  CHECK(chains({4000, 4}, along(1)) == 0);
  CHECK(chains({0, 64}, along(1)) == 0);
}

TEST_CASE("the number of threads changes no bit of a chain") {
  if (omp_set_num_threads == nullptr) return;
  Net net;
  append_cell(net, DType::float32, {300}, 40);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> alone = net.run(true);
  for (const int count : {2, 3, 7}) {
    omp_set_num_threads(count);
    CHECK(net.run(true) == alone);
  }
  omp_set_num_threads(threads);
}

}  // namespace plexaura::testing::row_chain_regions_test

#include "core/compile/mixed_precision.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/custom_gradient.h"
#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/params/parameter_store.h"
#include "core/scan/scan.h"
#include "core/scan/scan_op.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"

namespace plexaura::testing::mixed_precision_test {

namespace {

constexpr DType narrow = DType::bfloat16;
constexpr DType wide = DType::float32;
const TensorType rows{wide, {4, 6}};
const TensorType weights{wide, {6, 3}};
const TensorType bias{wide, {3}};

// Returns the dtypes of the first outputs of all ops with this name, in order.
std::vector<DType> dtypes_of(const Graph& graph, std::string_view op) {
  std::vector<DType> found;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == op) found.push_back(graph.record(id).types[0].dtype);
  return found;
}

std::size_t count(const Graph& graph, std::string_view op) { return dtypes_of(graph, op).size(); }

PassGraph narrowed(const Graph& graph, const Node& root) {
  return in_mixed_precision(graph, std::array{root.value()}, narrow);
}

using DTypes = std::vector<DType>;

}  // namespace

TEST_CASE("products narrow, what follows them follows, and losses are wide") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node product = matmul(x, graph.parameter("w", weights)) + graph.parameter("b", bias);
  const Node labels = graph.input("labels", {DType::int64, {4}});
  const PassGraph made = narrowed(graph, softmax_cross_entropy(relu(product), labels));
  CHECK(dtypes_of(*made.graph, "matmul") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "add") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "relu") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "softmax_cross_entropy") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "parameter") == DTypes{wide, wide});
  CHECK(count(*made.graph, "cast") == 4);  // casts of x, w, b and the logits
  CHECK(made.graph->type(made.roots[0]).dtype == wide);
}

TEST_CASE("what nothing narrow comes to stays wide, and so does an op that says nothing") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node before = relu(x * 2 + graph.parameter("shift", {wide, {6}}));
  const Node after = exp(matmul(before, graph.parameter("w", weights)));
  const PassGraph made = narrowed(graph, sum(after * 3));
  CHECK(dtypes_of(*made.graph, "relu") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "exp") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "mul") == DTypes{wide, wide});
  CHECK(dtypes_of(*made.graph, "sum") == DTypes{wide});
}

TEST_CASE("what takes a constant that 16 bits do not hold stays wide") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node product = matmul(x, graph.parameter("w", weights));
  const std::vector<Node> after{product / 70000, product * 60000, where(gt(product, 0), product, -1e9),
                                product * std::numeric_limits<double>::infinity()};
  std::vector<Value> roots;
  for (const Node& node : after) roots.push_back(node.value());
  const PassGraph halves = in_mixed_precision(graph, roots, DType::float16);
  CHECK(dtypes_of(*halves.graph, "div") == DTypes{wide});
  CHECK(dtypes_of(*halves.graph, "mul") == DTypes{DType::float16, DType::float16});
  CHECK(dtypes_of(*halves.graph, "where") == DTypes{wide});
  const PassGraph brains = in_mixed_precision(graph, roots, DType::bfloat16);
  CHECK(dtypes_of(*brains.graph, "div") == DTypes{DType::bfloat16});
}

TEST_CASE("a sum of something narrow and something wide is wide") {
  Graph graph;
  const Node x = graph.input("x", {wide, {4, 4}});
  const PassGraph made = narrowed(graph, matmul(x, x) + x);
  CHECK(dtypes_of(*made.graph, "add") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "cast") == DTypes{narrow, wide});  // x is cast once for both operands
}

TEST_CASE("what is computed of parameters alone is cast for its reader") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node w = graph.parameter("w", weights);
  const Node scaled = w / sqrt(sum(square(w)));
  const PassGraph made =
      narrowed(graph, matmul(x, scaled) + reshape(graph.parameter("b", {wide, {1, 3}}), {3}));
  CHECK(dtypes_of(*made.graph, "div") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "reshape") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "add") == DTypes{narrow});
}

TEST_CASE("a region with a gradient of its own has the dtype of its result, whatever its inputs have") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node w = graph.parameter("w", weights);
  const auto backward = [](const CustomGradientRequest& request) {
    CHECK(request.inputs[0].dtype() == request.cotangent.dtype());
    return std::vector<Node>{matmul(request.cotangent, request.inputs[1], {.transpose_b = true}), Node()};
  };
  const Node y = custom_gradient(
      {x, w}, [](const std::vector<Node>& in) { return matmul(in[0], in[1]); }, backward);
  // The result depends on weights alone, and the other input is narrow.
  const Node scaled = custom_gradient(
      {w, y}, [](const std::vector<Node>& in) { return in[0] * 2; },
      [](const CustomGradientRequest& request) {
        return std::vector<Node>{request.cotangent, Node()};
      });
  PassGraph made = in_mixed_precision(graph, std::array{sum(relu(y)).value(), sum(scaled).value()}, narrow);
  CHECK(dtypes_of(*made.graph, "custom_gradient") == DTypes{narrow, wide});
  CHECK(dtypes_of(*made.graph, "relu") == DTypes{narrow});
  const Node loss(*made.graph, made.roots[0]);
  CHECK(gradients(loss, {Node(*made.graph, Value{0, 0})})[0].dtype() == wide);
}

TEST_CASE("a region with a gradient of its own stays wide if an input holds a number beyond 16 bits") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const Node large = graph.constant(Tensor::scalar(1e6F));
  const Node y = custom_gradient(
      {large}, [&](const auto&) { return matmul(x, graph.parameter("w", weights)); },
      [](const CustomGradientRequest& request) {
        return std::vector<Node>{sum(request.cotangent * request.inputs[0])};
      });
  const PassGraph made = in_mixed_precision(graph, std::array{y.value()}, DType::float16);
  CHECK(dtypes_of(*made.graph, "custom_gradient") == DTypes{wide});
}

TEST_CASE("batch norm keeps its statistics and what is learnt of them") {
  Graph graph;
  const Node x = graph.input("x", {wide, {2, 3, 5, 5}});
  const Node y = conv2d(x, graph.parameter("w", {wide, {4, 3, 3, 3}}));
  const TensorType channels{wide, {4}};
  const BatchNormResult norm =
      batch_norm(y, graph.parameter("scale", channels), graph.parameter("shift", channels));
  const Node running = graph.buffer("running", channels);
  graph.update(running, running * 0.9 + norm.mean * 0.1);
  const PassGraph made = narrowed(graph, mean(relu(norm.y)));
  CHECK(dtypes_of(*made.graph, "conv2d") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "moments") == DTypes{wide});
  CHECK(dtypes_of(*made.graph, "normalise") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "relu") == DTypes{narrow});
  CHECK(dtypes_of(*made.graph, "mul") == DTypes{wide, wide});
  REQUIRE(made.graph->updates().size() == 1);
  CHECK(made.graph->type(made.graph->updates()[0].next) == channels);
  verify(*made.graph);
}

TEST_CASE("an update of something narrow is cast to its buffer") {
  Graph graph;
  const Node x = graph.input("x", {wide, {3, 3}});
  const Node buffer = graph.buffer("last", {wide, {3, 3}});
  const Node product = matmul(x, x);
  graph.update(buffer, product);
  const PassGraph made = narrowed(graph, sum(product));
  CHECK(made.graph->type(made.graph->updates()[0].next).dtype == wide);
}

TEST_CASE("other floating types are left alone") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3, 3}});
  const PassGraph made = narrowed(graph, sum(matmul(x, x)));
  CHECK(count(*made.graph, "cast") == 0);
  CHECK(made.graph->type(made.roots[0]).dtype == DType::float64);
}

TEST_CASE("gradients have the dtype of what they belong to") {
  Graph graph;
  const Node w = graph.parameter("w", weights);
  const Node loss = mse(matmul(graph.input("x", rows), w), graph.input("t", {wide, {4, 3}}));
  const PassGraph made = in_mixed_precision(graph, std::array{loss.value(), w.value()}, narrow);
  const std::vector<Node> found =
      gradients(Node(*made.graph, made.roots[0]), {Node(*made.graph, made.roots[1])});
  CHECK(found[0].type() == weights);
  CHECK(dtypes_of(*made.graph, "matmul") == DTypes{narrow, narrow});
}

TEST_CASE("a program reads narrow parameters where the store has them, and casts none") {
  ParameterStore store{{{"w", weights, ParameterRole::trainable, Initialiser::normal(1)},
                        {"b", bias, ParameterRole::trainable, Initialiser::normal(1)}}};
  store.set_types(ArenaTypes::mixed(narrow));
  Graph graph(Mode::inference);
  const Node x = graph.input("x", rows);
  const Node y = matmul(x, graph.parameter("w", weights)) + graph.parameter("b", bias);
  const PassGraph made = narrowed(graph, y);
  const std::vector<ProgramOutput> outputs{{.node = Node(*made.graph, made.roots[0])}};
  const auto program = compile(*made.graph, outputs, test_backend(), {.types = store.types()});
  const auto reads = [&](Place::Space space) {
    std::size_t found = 0;
    for (const Instruction& instruction : program->instructions)
      for (const auto& input : instruction.inputs) found += input && input->place.space == space ? 1 : 0;
    return found;
  };
  CHECK(reads(Place::Space::shadow) == 2);
  CHECK(reads(Place::Space::value) == 0);
  store.place(program->placement, test_backend());
  VM vm(program, test_backend(), {.store = &store});
  Tensor ones(rows);
  std::ranges::fill(ones.as<float>(), 1.F);
  vm.run({{"x", ones}});
  const std::vector<double> w = store.read_shadow("w").to_doubles();
  const std::vector<double> b = store.read_shadow("b").to_doubles();
  for (std::size_t column = 0; column < 3; ++column) {
    double expected = b[column];
    for (std::size_t row = 0; row < 6; ++row) expected += w[row * 3 + column];
    CHECK(vm.output().to_doubles()[column] == doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("without a store of that type parameters are cast") {
  Graph graph(Mode::inference);
  const Node y = matmul(graph.input("x", rows), graph.parameter("w", weights));
  const PassGraph made = narrowed(graph, y);
  const std::vector<ProgramOutput> outputs{{.node = Node(*made.graph, made.roots[0])}};
  const auto program = compile(*made.graph, outputs, test_backend());
  CHECK(program->prologue.size() == 1);
}

TEST_CASE("the body of a scan narrows, and its carries and outputs keep their types") {
  Graph graph;
  const Node x = graph.input("x", {wide, {5, 4, 6}});
  const Node h = graph.input("h", {wide, {4, 6}});
  const Node w = graph.parameter("w", {wide, {6, 6}});
  const Node b = graph.parameter("b", {wide, {6}});
  const ScanStep loop = scan({x}, {h}, [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
    const Node next = matmul(carries[0], w) + b;
    return ScanStep{{next + xs[0]}, {relu(next)}};
  });
  const PassGraph made = narrowed(graph, sum(loop.outputs[0]) + sum(loop.carries[0]));
  const Scan* narrow_scan = nullptr;
  NodeId place = 0;
  for (NodeId id = 0; id < made.graph->size(); ++id)
    if (const Scan* found = as_scan(*made.graph->record(id).op)) narrow_scan = found, place = id;
  REQUIRE(narrow_scan != nullptr);
  CHECK(dtypes_of(narrow_scan->body().graph(), "matmul") == DTypes{narrow});
  CHECK(dtypes_of(narrow_scan->body().graph(), "relu") == DTypes{narrow});
  CHECK(made.graph->record(place).types[0].dtype == wide);
  CHECK(made.graph->record(place).types[1].dtype == wide);
  Graph& target = *made.graph;
  const Node loss(target, made.roots[0]);
  Node of_w;
  for (NodeId id = 0; id < target.size(); ++id)
    if (const Leaf* leaf = as_leaf(*target.record(id).op); leaf != nullptr && leaf->label() == "w")
      of_w = Node(target, {id, 0});
  const Node gradient = gradients(loss, {of_w})[0];
  CHECK(gradient.type() == w.type());
  const Scan* backward = as_scan(*target.record(gradient.id()).op);
  REQUIRE(backward != nullptr);  // the weight is cast again, and not kept for each step
  for (std::size_t i = backward->whole().operands(); i < backward->body().operands(); ++i)
    CHECK(backward->body().operand_type(i).shape != w.shape());
}

}  // namespace plexaura::testing::mixed_precision_test

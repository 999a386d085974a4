// A backend offers a kernel for two nodes, which adds to its output. Fused or not, in the first micro-batch
// or in later ones, the gradient arena holds the same bits. If the backend offers a region and then no kernel
// for it, the region's nodes are computed one by one.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/device/forwarding_backend.h"
#include "core/device/transfer.h"
#include "core/host/host_adapter.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::region_test {

namespace {

// A backend with host memory that also fuses a product with the addition that follows it.
class WithProductSums final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    const NodeRecord& sum = graph.record(last);
    if (sum.op->name() != "add") return {};
    const Value product = sum.inputs[0];
    const auto name = graph.record(product.node).op->name();
    if ((name != "mul" && name != "matmul") || !uses.only_read_by(product, last)) return {};
    Region region{
        std::string(name) + "+add", {product.node, last}, graph.record(product.node).inputs, {{last, 0}}};
    region.inputs.push_back(sum.inputs[1]);
    return {region};
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    return query.region.nodes.size() > 1 ? propose_host_kernel(query) : inner().propose(query);
  }
};

// The backend of the tests, which offers one kind of region at most: a sum together with the node that
// computes its first operand. It has no kernel for the region: always, or only when the layouts of its inputs
// are known.
class Refusing final : public ForwardingBackend {
 public:
  enum class When : std::uint8_t { not_offered, always, beside_layouts };
  explicit Refusing(When when) : ForwardingBackend(test_backend()), when_(when) {}

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    const NodeRecord& sum = graph.record(last);
    if (when_ == When::not_offered || sum.op->name() != "add") return {};
    if (!uses.only_read_by(sum.inputs[0], last)) return {};
    const NodeId first = sum.inputs[0].node;
    Region region{"refused", {first, last}, graph.record(first).inputs, {{last, 0}}};
    region.inputs.push_back(sum.inputs[1]);
    return {region};
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "refused") return inner().propose(query);
    const bool knows =
        std::ranges::any_of(query.given, [](const auto& layout) { return layout.has_value(); });
    if (when_ == When::always || knows) return {};
    std::vector<Candidate> candidates = propose_host_kernel(query);
    for (Candidate& candidate : candidates) candidate.seconds = 0;
    return candidates;
  }

 private:
  When when_;
};

struct Backends {
  Backends() {
    if (test_backend().info().host_memory) {
      inner = open_backend("portable");
      fusing = std::make_unique<WithProductSums>(*inner);
    } else {
      const char* lazy = std::getenv("PLEXAURA_FAR_LAZY");
      fusing = open_backend("far", {{"regions", "1"}, {"lazy", lazy == nullptr ? "0" : lazy}});
    }
  }
  std::unique_ptr<Backend> inner;
  std::unique_ptr<Backend> fusing;
};

// A gradient that is a product plus an input. It has the shape [4, 6] for matmul, and that of images
// otherwise, which the far device stores with padded channels.
struct Gradient {
  explicit Gradient(bool images) : type{DType::float32, images ? Shape{2, 3, 4, 4} : Shape{4, 6}} {
    const Node w = graph.parameter("w", type);
    const Node x = graph.input("x", type);
    const Node product =
        images ? w * x : matmul(x, graph.constant(whole_numbers({DType::float32, {6, 6}}, 8)));
    outputs.push_back({.node = product + x, .gradient_of = "w"});
    outputs.push_back({.node = w});  // so that the program reads w
  }
  TensorType type;
  Graph graph;
  std::vector<ProgramOutput> outputs;
};

std::vector<std::size_t> instructions_of_two(const Program& program) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].nodes.size() == 2) found.push_back(i);
  return found;
}

// Returns the gradient after two runs. Only the inputs of the second run count.
Tensor computed(const Gradient& gradient, Backend& backend, bool optimise, std::size_t regions) {
  ParameterStore store({{"w", gradient.type, ParameterRole::trainable, Initialiser::zeros()}});
  store.write("w", whole_numbers(gradient.type, 1));
  const auto program = compile(gradient.graph, gradient.outputs, backend, {.optimise = optimise});
  store.place(program->placement, backend);
  const auto found = instructions_of_two(*program);
  REQUIRE(found.size() == regions);
  // The region writes directly into the gradient arena.
  for (const std::size_t index : found)
    CHECK(program->instructions[index].outputs[0]->place.space == Place::Space::gradient);
  VM vm(program, backend, {.store = &store});
  vm.run({{"x", whole_numbers(gradient.type, 10)}});
  vm.run({{"x", whole_numbers(gradient.type, 11)}});
  vm.wait();
  return store.read_gradient("w");
}

}  // namespace

TEST_CASE("a region of two nodes writes into the gradient arena like its nodes one by one") {
  const Backends backends;
  for (const bool images : {false, true}) {
    CAPTURE(images);
    const Gradient gradient(images);
    const Tensor fused = computed(gradient, *backends.fusing, true, 1);
    CHECK(fused == computed(gradient, *backends.fusing, false, 0));
    CHECK(fused == computed(gradient, oracle(), true, 0));
  }
}

TEST_CASE("a refused region falls apart into the kernels that its nodes get") {
  Graph graph;
  const TensorType type{DType::float32, {2, 16, 4, 4}};
  const Node x = graph.input("x", type);
  const Node w = graph.constant(whole_numbers({DType::float32, {16, 16, 3, 3}}, 2));
  const Node y = conv2d(x, w, {.padding = {1, 1}}) + x;
  const std::vector<ProgramOutput> outputs{{.node = relu(y * x + 1)}};
  const auto run = [&](Backend& backend, std::vector<std::string>& kernels) {
    const auto program = compile(graph, outputs, backend);
    for (const Instruction& instruction : program->instructions)
      kernels.push_back(instruction.implementation);
    VM vm(program, backend);
    vm.run({{"x", whole_numbers(type, 3)}});
    return vm.output(0);
  };
  std::vector<std::string> plain;
  Refusing without_regions(Refusing::When::not_offered);
  const Tensor expected = run(without_regions, plain);
  for (const auto when : {Refusing::When::always, Refusing::When::beside_layouts}) {
    CAPTURE(static_cast<int>(when));
    Refusing backend(when);
    std::vector<std::string> kernels;
    CHECK(run(backend, kernels) == expected);
    CHECK(kernels == plain);
  }
}

TEST_CASE("a value may be an update as well as a gradient") {
  Graph graph;
  const TensorType type{DType::float32, {4, 6}};
  const Node x = graph.input("x", type);
  const Node w = graph.parameter("w", type);
  const Node last = graph.buffer("last", type);
  const Node product = w * x;
  graph.update(last, product);
  ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()},
                        {"last", type, ParameterRole::buffer, Initialiser::zeros()}});
  const std::vector<ProgramOutput> outputs{{.node = product, .gradient_of = "w"}};
  VM vm(compile(graph, outputs, test_backend()), test_backend(), {.store = &store});
  for (int i = 0; i < 3; ++i) vm.run({{"x", whole_numbers(type, 5)}});
  vm.wait();
  CHECK(store.read("last") == whole_numbers(type, 5));
  CHECK(store.read_gradient("w") == whole_numbers(type, 5));
}

}  // namespace plexaura::testing::region_test

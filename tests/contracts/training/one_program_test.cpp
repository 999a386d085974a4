// Gradients and update of a step form one program. It computes the same bits as two programs, and a device
// that records replays it as one recording.

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/compile/link.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::one_program_test {

namespace {

const TensorType weights{DType::float32, {6, 3}};
const TensorType statistics{DType::float32, {4, 6}};

std::vector<ParameterSpec> specs() {
  return {{"w", weights, ParameterRole::trainable, Initialiser::uniform(1)},
          {"seen", statistics, ParameterRole::buffer, Initialiser::zeros()}};
}

// A model with constants, a random op and a buffer.
LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node seen = graph.buffer("seen", statistics);
  graph.update(seen, seen * 0.5 + x * graph.constant(whole_numbers(statistics, 7)));
  return {squared_error(tanh(matmul(dropout(x, {.p = 0.5}), graph.parameter("w", weights))), t)};
}

Batch batch_of(std::uint64_t seed) {
  return {whole_numbers({DType::float32, {4, 6}}, seed),
          whole_numbers({DType::float32, {4, 3}}, seed + 1, 1)};
}

SmallTraining training(Backend& backend) {
  return {
      backend, specs(), model, batch_of(1), {.optimizer = {.kind = OptimizerSpec::Kind::adam}, .seed = 3}};
}

}  // namespace

TEST_CASE("a step is one recording, of the bits of two programs") {
  CountingBackend backend(test_backend());
  SmallTraining run = training(backend);
  SmallTraining other = training(test_backend());
  const auto shared = [](const Program& program) {
    return std::shared_ptr<const Program>(std::shared_ptr<const Program>(), &program);
  };
  VM gradients(shared(other.gradients(4)), test_backend(), {.store = &other.store()});
  VM update(shared(other.update()), test_backend(), {.store = &other.store()});
  for (int i = 1; i <= 6; ++i) {
    CAPTURE(i);
    const Batch batch = batch_of(static_cast<std::uint64_t>(i));
    StepBlock block;
    block.samples = 4;
    block.learning_rate = 0.1 / i;
    block.step = i;
    block.seed = 3;
    gradients.run({{"x", batch.x}, {"t", batch.t}}, block);
    update.run({}, block);
    update.wait();
    const CountingBackend::Counts before = backend.counts();
    run.step(batch, 0.1 / i);
    check_same_values(run.store(), other.store());
    CHECK(run.store().read_state(1, "w") == other.store().read_state(1, "w"));
    if (test_backend().record([] {}) == nullptr) continue;
    CHECK(backend.counts().replays == before.replays + 1);
    // one recording for each feed slot
    CHECK(backend.counts().recordings == before.recordings + (i <= 2 ? 1 : 0));
  }
}

TEST_CASE("a rank whose own work failed updates nothing") {
  SmallTraining run = training(test_backend());
  run.step(batch_of(1), 0.1);
  const Tensor before = run.value("w");
  const Tensor seen = run.value("seen");
  const StepTicket ticket = run.steps().run(
      {.step = 2, .learning_rate = 0.1, .failure = std::make_exception_ptr(UserError("no batch"))});
  CHECK(user_error([&] { run.steps().metrics(ticket); }) == "no batch");
  CHECK(run.value("w") == before);  // the mean of past gradients alone would change the weight
  CHECK(run.value("seen") == seen);
}

TEST_CASE("instructions of a linked program name the nodes of its graph") {
  SmallTraining run = training(test_backend());
  const Program& gradients = run.gradients(4);
  const auto linked = link(gradients, run.update());
  CHECK(linked->instructions.size() == gradients.instructions.size() + run.update().instructions.size());
  for (std::size_t i = 0; i < linked->instructions.size(); ++i) {
    CAPTURE(i);
    const bool first = i < gradients.instructions.size();
    const Program& from = first ? gradients : run.update();
    const Instruction& original = from.instructions[first ? i : i - gradients.instructions.size()];
    const Instruction& moved = linked->instructions[i];
    REQUIRE(moved.nodes.size() == original.nodes.size());
    CHECK(linked->graph->record(moved.nodes[0]).op == from.graph->record(original.nodes[0]).op);
    for (const auto& output : moved.outputs)
      if (output) CHECK(linked->graph->type(output->value) == output->type);
  }
}

TEST_CASE("constants of both programs stay apart") {
  const TensorType type{DType::float32, {4, 6}};
  ParameterStore store({{"a", type, ParameterRole::buffer, Initialiser::zeros()},
                        {"b", type, ParameterRole::buffer, Initialiser::zeros()}});
  const Tensor odd = whole_numbers(type, 1);
  const Tensor even = whole_numbers(type, 2);
  const auto adding = [&](const char* name, const Tensor& constant, const Placement* placement) {
    Graph graph;
    for (const char* used : {"a", "b"}) {
      const Node buffer = graph.buffer(used, type);
      graph.update(buffer, std::string(used) == name ? buffer + graph.constant(constant) : buffer * 1);
    }
    return compile(graph, {}, test_backend(), {.placement = placement});
  };
  const auto first = adding("a", odd, nullptr);
  store.place(first->placement, test_backend());
  VM vm(link(*first, *adding("b", even, &store.placement())), test_backend(), {.store = &store});
  vm.run({});
  vm.wait();
  CHECK(store.read("a") == odd);
  CHECK(store.read("b") == even);
}

TEST_CASE("what cannot be linked is refused") {
  SmallTraining run = training(test_backend());
  CHECK(error_text<InternalError>([&] { link(run.update(), run.gradients(4)); }).find("has inputs") !=
        std::string::npos);
  Graph graph;
  const Node x = graph.input("x", weights);
  const std::vector<ProgramOutput> outputs{{.node = x * 2}};
  const auto readable = compile(graph, outputs, test_backend());
  CHECK(error_text<InternalError>([&] { link(*readable, run.update()); }).find("to be read") !=
        std::string::npos);
  SmallTraining other(test_backend(), {{"w", weights, ParameterRole::trainable, Initialiser::ones()}},
                      [](Graph& net, const Node& a, const Node& b) -> LossOutputs {
                        return {squared_error(matmul(a, net.parameter("w", weights)), b)};
                      },
                      batch_of(1), {});
  CHECK(error_text<InternalError>([&] { link(run.gradients(4), other.update()); }).find("placements") !=
        std::string::npos);
}

}  // namespace plexaura::testing::one_program_test

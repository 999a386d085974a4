// The VM can be used for debugging: with keep_all every value of the graph can be read after a run, which
// computes the same as the optimised one, and the watch reports op, node and line of the first NaN or Inf.

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/read_tail.h"

namespace plexaura::testing::debugging_test {

namespace {

const TensorType images{DType::float32, {4, 3, 6, 6}};
const TensorType filter{DType::float32, {5, 3, 3, 3}};
const TensorType channels{DType::float32, {5}};

struct Net {
  Net() {
    const Node w = graph.parameter("w", filter);
    const Node scale = graph.parameter("scale", channels);
    const BatchNormResult norm = batch_norm(conv2d(x, w), scale, graph.parameter("shift", channels));
    const Node running = graph.buffer("running", channels);
    graph.update(running, running * 0.5 + norm.mean * 0.5);
    const Node hidden = max_pool2d(relu(norm.y), {.kernel = {2, 2}});
    factor = graph.input("factor", {DType::float32, {}});
    unused = hidden * factor;
    loss = sum(square(flatten(hidden))) * (1.0 / 64);
    for (const Node& gradient : gradients(loss, {w, scale})) outputs.push_back({.node = gradient});
    outputs.push_back({.node = loss});
    outputs.push_back({.node = running});
  }
  Graph graph;
  Node x = graph.input("x", images);
  Node loss;
  Node factor;  // no output needs this input, and it is not fed
  Node unused;
  std::vector<ProgramOutput> outputs;
};

ParameterStore store() {
  return ParameterStore({{"w", filter, ParameterRole::trainable, Initialiser::he_normal()},
                         {"scale", channels, ParameterRole::trainable, Initialiser::ones()},
                         {"shift", channels, ParameterRole::trainable, Initialiser::zeros()},
                         {"running", channels, ParameterRole::buffer, Initialiser::zeros()}});
}

void check_close(const Tensor& a, const Tensor& b) {
  const auto left = a.to_doubles();
  const auto right = b.to_doubles();
  for (std::size_t i = 0; i < left.size(); ++i)
    CHECK(std::abs(left[i] - right[i]) <= 1e-5 * std::max(1.0, std::abs(right[i])));
}

}  // namespace

TEST_CASE("with keep_all every value that outputs need can be read, and is what the optimised run computes") {
  Net net;
  ParameterStore kept_store = store();
  ParameterStore plain_store = store();
  VM kept(compile(net.graph, net.outputs, test_backend(), {.keep_all = true}), test_backend(),
          {.store = &kept_store});
  VM plain(compile(net.graph, net.outputs, test_backend()), test_backend(), {.store = &plain_store});
  for (int run = 0; run < 2; ++run) {
    const Tensor x = whole_numbers(images, static_cast<std::uint64_t>(run) + 1);
    const Tensor before = kept_store.read("running");
    kept.run({{"x", x}});
    plain.run({{"x", x}});
    for (std::size_t i = 0; i < net.outputs.size(); ++i) {
      check_close(kept.output(i), plain.output(i));
      CHECK(kept.value(net.outputs[i].node) == kept.output(i));
    }
    CHECK(kept.program().kept.size() > net.graph.size() / 2);
    for (const auto& [value, slot] : kept.program().kept) {
      const Node node(net.graph, value);
      CAPTURE(name_of(net.graph, node.id()));
      const Tensor tensor = kept.value(node);
      CHECK(tensor.type() == node.type());
      for (const double element : tensor.to_doubles()) CHECK(std::isfinite(element));
    }
    CHECK(kept.value(net.x) == x);
    // the value that the run has read
    CHECK(kept.value(Node(net.graph, net.graph.updates()[0].buffer)) == before);
  }
  for (const char* name : {"w", "running"}) check_close(kept_store.read(name), plain_store.read(name));
  CHECK(user_error([&] { plain.value(net.unused); }).find("compile it with keep_all") != std::string::npos);
  CHECK(user_error([&] { kept.value(net.unused); }) ==
        "VM::value(" + name_of(net.graph, net.unused.id()) +
            "): no output of the program needs it; make it an output");
}

TEST_CASE("the watch names op, node and line of the first NaN or Inf") {
  for (const bool infinite : {false, true}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {4}});
    const Node fine = x * 2 + 1;
    const int line = __LINE__ + 1;
    const Node bad = log(fine);
    const std::vector<ProgramOutput> outputs{{.node = bad * 3}};
    VM vm(compile(graph, outputs, test_backend()), test_backend(), {.watch = true});
    vm.run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}});
    const float culprit = infinite ? -0.5F : -3.F;
    const std::string text = user_error([&] { vm.run({{"x", Tensor::of<float>({4}, {1, 2, culprit, 4})}}); });
    CAPTURE(text);
    CHECK(text.find("log %") != std::string::npos);
    CHECK(text.find(fmt::format("debugging_test.cpp:{}", line)) != std::string::npos);
    CHECK(text.find(infinite ? "Inf" : "NaN") != std::string::npos);
    CHECK(text.find("element 2") != std::string::npos);
    vm.run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}});  // the VM can be used again
    CHECK(std::isfinite(vm.output().to_doubles()[0]));
  }
}

TEST_CASE("the watch names what is wrong before the first instruction: in what derives from parameters") {
  const TensorType type{DType::float32, {4}};
  Graph graph(Mode::inference);
  const Node x = graph.input("x", type);
  const int line = __LINE__ + 1;
  const Node bad = log(graph.parameter("w", type));
  const std::vector<ProgramOutput> outputs{{.node = x * bad}};
  ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()}});
  const auto program = compile(graph, outputs, test_backend());
  REQUIRE(!program->prologue.empty());
  VM vm(program, test_backend(), {.store = &store, .watch = true});
  const auto run = [&] { vm.run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}}); };
  store.write("w", Tensor::of<float>({4}, {1, -1, 1, 1}));
  for (int again = 0; again < 2; ++again) {
    const std::string text = user_error(run);
    CAPTURE(text);
    CHECK(text.find("log %") != std::string::npos);
    CHECK(text.find(fmt::format("debugging_test.cpp:{}", line)) != std::string::npos);
    CHECK(text.find("NaN at element 1") != std::string::npos);
    CHECK(text.find("an input ranged over [-1, 1]") != std::string::npos);
  }
  store.write("w", Tensor::of<float>({4}, {1, 1, 1, 1}));
  run();
  CHECK(vm.output().to_doubles() == std::vector<double>(4, 0));
}

TEST_CASE("the watch shows a failed step to the other ranks, and its text to the user") {
  const Batch batch{Tensor::of<float>({2, 1}, {-1, 1}), Tensor::of<float>({2, 1}, {0, 0})};
  const TensorType scalar{DType::float32, {1, 1}};
  const SmallTraining::Model model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    return {squared_error(sqrt(matmul(x, graph.parameter("w", scalar))), t)};
  };
  SmallTraining run(test_backend(), {{"w", scalar, ParameterRole::trainable, Initialiser::ones()}}, model,
                    batch, {.sizes = {2}, .watch = true});
  run.launch(std::span(&batch, 1), 0.1);
  CHECK(user_error([&] { run.metrics(); }).find("sqrt") != std::string::npos);
  CHECK(run.value("w").to_doubles()[0] == 1);
  CHECK(read_tail(run.store(), TailSlot::failed) == 1);
}

}  // namespace plexaura::testing::debugging_test

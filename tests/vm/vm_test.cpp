#include "core/vm/vm.h"

#include <doctest/doctest.h>
#include <stdexcept>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/device/forwarding_backend.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/gate.h"
#include "tests/support/points.h"

namespace plexaura::testing::vm_test {

namespace {

const TensorType type{DType::float32, {4}};

Tensor filled(float value) {
  Tensor tensor(type);
  for (float& element : tensor.as<float>()) element = value;
  return tensor;
}

// y = x; its kernel fails where x is negative.
struct Fragile final : OpOf<Fragile> {
  std::string_view name() const override { return "fragile"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void compute(const HostCall& call) const {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
      if (call.inputs[0].as<float>()[i] < 0) throw std::runtime_error("broke");
      call.outputs[0].as<float>()[i] = call.inputs[0].as<float>()[i];
    }
  }
};

struct Sum {
  Graph graph;
  Node x = graph.input("left", type);
  Node y = graph.input("right", type);
  Node unused = graph.input("unused", type);
  std::vector<ProgramOutput> outputs{{.node = x + y}};
  VM vm{compile(graph, outputs, test_backend()), test_backend()};
};

bool says(const std::string& text, std::initializer_list<std::string_view> words) {
  CAPTURE(text);
  for (const std::string_view word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
  return true;
}

}  // namespace

TEST_CASE("wrong feeds are refused in words, and leave the VM as it was") {
  Sum sum;
  const Tensor one = filled(1);
  const Tensor wrong({DType::float32, {5}});
  const Tensor other_dtype({DType::float64, {4}});
  for (int round = 0; round < 3; ++round) {
    says(user_error([&] { sum.vm.run({{"left", one}}); }), {"'right' was not fed"});
    says(user_error([&] {
           sum.vm.run({{"left", one}, {"right", wrong}});
         }),
         {"'right' is float32[4] and was fed float32[5]; feed this shape, or compile a program for the other "
          "one"});
    says(user_error([&] {
           sum.vm.run({{"left", one}, {"right", other_dtype}});
         }),
         {"'right' is float32[4] and was fed float64[4]; convert the tensor with Tensor::cast()"});
    says(user_error([&] {
           sum.vm.run({{"left", one}, {"left", one}, {"right", one}});
         }),
         {"'left' was fed twice"});
    says(user_error([&] {
           sum.vm.run({{"left", one}, {"rigth", one}});
         }),
         {"no input 'rigth'", "did you mean 'right'"});
    sum.vm.run({{"right", filled(2)}, {"left", one}});
    CHECK(sum.vm.output() == filled(3));
  }
}

TEST_CASE("an input that the outputs do not need may be fed or not") {
  Sum sum;
  sum.vm.run({{"left", filled(1)}, {"right", filled(2)}, {"unused", filled(9)}});
  CHECK(sum.vm.output() == filled(3));
}

TEST_CASE("a list of feeds keeps tensors that were made for it") {
  Sum sum;
  std::vector<Feed> feeds;
  const Tensor left = filled(1);
  feeds.emplace_back("left", left);
  feeds.emplace_back("right", filled(2));
  const std::vector<Feed> copies = feeds;
  feeds.clear();
  sum.vm.run(copies);
  CHECK(sum.vm.output() == filled(3));
  CHECK(copies[0].data() == left.data());
}

TEST_CASE(
    "an unknown input is taken for one that was not fed, and first for one that differs in its case alone") {
  Graph graph;
  const Node a = graph.input("a", type);
  const std::vector<ProgramOutput> outputs{{.node = a + graph.input("b", type) + graph.input("lefty", type)}};
  VM vm(compile(graph, outputs, test_backend()), test_backend());
  const auto error = [&](const char* name) {
    return user_error([&] { vm.run({{"a", filled(1)}, {name, filled(1)}}); });
  };
  CHECK(error("B") == "VM::run: the program has no input 'B'; did you mean 'b'?");
  CHECK(error("A") == "VM::run: the program has no input 'A'; did you mean 'b'?");
  CHECK(error("LEFTY") == "VM::run: the program has no input 'LEFTY'; did you mean 'lefty'?");
  CHECK(error("other") == "VM::run: the program has no input 'other'; inputs that were not fed: lefty, b");
}

TEST_CASE("a feed whose tensor is gone is refused in words") {
  Sum sum;
  std::vector<Feed> feeds{{"right", filled(2)}};
  Tensor changing = filled(1);
  {
    const Tensor left = filled(1);
    feeds.emplace_back("left", left);
    sum.vm.run(feeds);
    CHECK(sum.vm.output() == filled(3));
  }
  const std::string text =
      "the tensor that the input 'left' was fed was destroyed or assigned to after the Feed was made; keep "
      "it as it is "
      "until the run, or make the Feed of std::move(tensor)";
  CHECK(user_error([&] { sum.vm.run(feeds); }) == text);
  CHECK(user_error([&] { feeds.back().tensor(); }) == text);
  feeds.back() = Feed("left", changing);
  changing = filled(5);
  CHECK(user_error([&] { sum.vm.run(feeds); }) == text);
  Tensor moved = std::move(changing);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is tested
  CHECK(user_error([&] { Feed("left", changing); }) ==
        "the input 'left' was fed a tensor that was moved from");
}

TEST_CASE("a VM that another thread is in refuses a call") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = gated(graph.input("x", type))}};
  VM vm(compile(graph, outputs, oracle()), oracle());
  while_running(
      [&] {
        vm.run({{"x", filled(1)}});
      },
      [&] {
        const std::string text =
            "a VM serves one thread at a time, and another thread is in it now; make a VM "
            "of the program for each thread";
        CHECK(user_error([&] { vm.run({{"x", filled(2)}}); }) == text);
        CHECK(user_error([&] { vm.output(); }) == text);
        CHECK(user_error([&] { vm.wait(); }) == text);
      });
  CHECK(vm.output() == filled(1));
  vm.run({{"x", filled(2)}});
  CHECK(vm.output() == filled(2));
}

TEST_CASE("a VM that its own run calls refuses the call, and says that it is the same thread") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = neg(graph.input("x", type))}};
  std::vector<std::string> texts;
  VM vm(compile(graph, outputs, test_backend()), test_backend(), {.host_points = {{0}}});
  run_with_points(vm, {{"x", filled(1)}}, [&](std::size_t) {
    texts = {user_error([&] {
               vm.run({{"x", filled(2)}});
             }),
             user_error([&] { vm.output(); }), user_error([&] { vm.wait(); })};
  });
  CHECK(vm.output() == filled(-1));
  REQUIRE(texts.size() == 3);
  for (const std::string& text : texts)
    CHECK(text.starts_with("a VM was called from within another call of itself"));
}

TEST_CASE("a VM shares a backend that is shared, and its store, and notices that another backend is gone") {
  Graph graph;
  const Node x = graph.input("x", type);
  const std::vector<ProgramOutput> outputs{{.node = x + graph.parameter("w", type)}};
  const auto make = [&](Backend& backend) {
    ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()}});
    return std::make_unique<VM>(compile(graph, outputs, backend), backend, VmOptions{.store = &store});
  };
  std::shared_ptr<Backend> shared = open_backend("portable");
  const auto sharing = make(*shared);
  shared.reset();
  sharing->run({{"x", filled(1)}});
  CHECK(sharing->output() == filled(2));
  std::unique_ptr<Backend> own = open_backend("portable");
  const auto left = make(*own);
  left->run({{"x", filled(1)}});
  own.reset();
  const std::string text = "the backend was destroyed before what was made for it";
  CHECK(user_error([&] { left->run({{"x", filled(1)}}); }).starts_with(text));
  CHECK(user_error([&] { left->output(); }).starts_with(text));
}

TEST_CASE("what a program computes cannot be read before it has run") {
  Sum sum;
  CHECK(user_error([&] { sum.vm.output(); }) ==
        "VM::output(0): the program has not run yet; call run() first");
  CHECK(user_error([&] { sum.vm.run({}); }).find("was not fed") != std::string::npos);
  CHECK(user_error([&] { sum.vm.output(); }).find("has not run yet") != std::string::npos);
  VM kept(compile(sum.graph, sum.outputs, test_backend(), {.keep_all = true}), test_backend());
  CHECK(user_error([&] { kept.value(sum.x); }) ==
        "VM::value(" + name_of(sum.graph, sum.x.id()) + "): the program has not run yet; call run() first");
}

TEST_CASE("outputs and values that there are not are refused") {
  Sum sum;
  sum.vm.run({{"left", filled(1)}, {"right", filled(2)}});
  says(user_error([&] { sum.vm.output(1); }), {"1 readable outputs"});
  says(user_error([&] { sum.vm.value(sum.x); }), {"keep_all", "input %0"});
  VM kept(compile(sum.graph, sum.outputs, test_backend(), {.keep_all = true}), test_backend());
  kept.run({{"left", filled(1)}, {"right", filled(2)}, {"unused", filled(3)}});
  CHECK(kept.value(sum.x) == filled(1));
  Graph other;
  const Node foreign = other.input("left", type);
  says(user_error([&] { kept.value(foreign); }), {"VM::value(input %0", "another graph"});
  says(user_error([&] { kept.value(Node()); }), {"empty Node"});
  says(user_error([] { VM(nullptr, test_backend()); }), {"the program is null", "compile()"});
}

TEST_CASE("a bool of another byte than 0 and 1 is refused") {
  Graph graph;
  const Node flags = graph.input("flags", {DType::boolean, {3}});
  const std::vector<ProgramOutput> outputs{{.node = cast(flags, DType::float32)}};
  VM vm(compile(graph, outputs, test_backend()), test_backend());
  Tensor tensor(flags.type());
  tensor.data()[1] = std::byte{2};
  says(user_error([&] { vm.run({{"flags", tensor}}); }), {"element 1 of the input 'flags' is the byte 2"});
  tensor.data()[1] = std::byte{1};
  vm.run({{"flags", tensor}});
  CHECK(vm.output().to_doubles() == std::vector<double>{0, 1, 0});
}

TEST_CASE("a run that failed leaves nothing to read") {
  Graph graph;
  const Node x = graph.input("x", type);
  const std::vector<ProgramOutput> outputs{{.node = apply(std::make_shared<Fragile>(), {x})}};
  VM vm(compile(graph, outputs, test_backend()), test_backend());
  for (int round = 0; round < 3; ++round) {
    const std::string text = device_error([&] {
      vm.run({{"x", filled(-1)}});
      vm.wait();
    });
    says(text, {"broke"});
    says(user_error([&] { vm.output(); }), {"VM::output(0)", "the last run failed"});
    says(user_error([&] { vm.output(); }), {"call run() again"});
    vm.run({{"x", filled(5)}});
    CHECK(vm.output() == filled(5));
  }
}

TEST_CASE("a kernel that fails names its node, and later runs go on") {
  Graph graph;
  const Node x = graph.input("x", type);
  const Node fragile = apply(std::make_shared<Fragile>(), {x});
  const std::vector<ProgramOutput> outputs{{.node = fragile + 1}};
  VM vm(compile(graph, outputs, test_backend()), test_backend());
  for (int round = 0; round < 4; ++round) {
    const std::string text = device_error([&] {
      vm.run({{"x", filled(-1)}});
      vm.wait();
    });
    says(text, {"fragile %1 of", "vm_test.cpp", "broke"});
    vm.run({{"x", filled(1)}});
    CHECK(vm.output() == filled(2));
    vm.run({{"x", filled(2)}});
    CHECK(vm.output() == filled(3));
  }
}

TEST_CASE("work at a host point that throws stops the run there, and later runs go on") {
  Graph graph;
  const Node x = graph.input("x", type);
  const std::vector<ProgramOutput> outputs{{.node = exp(tanh(x) * 2)}};
  const auto program = compile(graph, outputs, test_backend(), {.optimise = false});
  bool broken = false;
  std::vector<std::size_t> called;
  const auto work = [&](std::size_t point) {
    called.push_back(point);
    if (broken && point == 10) throw std::runtime_error("the host");
  };
  VM vm(program, test_backend(), {.host_points = {{3, 30}, {0, 0}, {1, 10}, {1, 11}}});
  VM plain(program, test_backend());
  for (int round = 0; round < 3; ++round) {
    called.clear();
    broken = true;
    CHECK_THROWS_AS(run_with_points(vm, {{"x", filled(1)}}, work), std::runtime_error);
    CHECK(called == std::vector<std::size_t>{0, 10});
    CHECK_THROWS_AS(vm.output(), UserError);
    broken = false;
    called.clear();
    run_with_points(vm, {{"x", filled(0.5)}}, work);
    plain.run({{"x", filled(0.5)}});
    CHECK(vm.output() == plain.output());
    CHECK(called == std::vector<std::size_t>{0, 10, 11, 30});
    vm.run({{"x", filled(0.25)}});  // does not stop at the points
    plain.run({{"x", filled(0.25)}});
    CHECK(vm.output() == plain.output());
  }
}

TEST_CASE("a host point can end the run, and later runs go on") {
  Graph graph;
  const Node total = graph.buffer("total", type);
  const Node count = graph.buffer("count", type);
  graph.update(total, total + 1);
  graph.update(count, count + 1);
  ParameterStore store({{"total", type, ParameterRole::buffer, Initialiser::zeros()},
                        {"count", type, ParameterRole::buffer, Initialiser::zeros()}});
  const auto program = compile(graph, {}, test_backend());
  REQUIRE(program->instructions.size() == 2);
  VM vm(program, test_backend(), {.store = &store, .host_points = {{1, 1}, {2, 2}}});
  {
    VmRun run(vm, {});
    CHECK(run.next() == 1);
    run.end();
  }
  vm.wait();
  CHECK(store.read("total") == filled(1));
  CHECK(store.read("count") == filled(0));
  std::vector<std::size_t> called;
  run_with_points(vm, {}, [&](std::size_t point) { called.push_back(point); });
  vm.wait();
  CHECK(called == std::vector<std::size_t>{1, 2});
  CHECK(store.read("total") == filled(2));
  CHECK(store.read("count") == filled(1));
}

TEST_CASE("a run that fails may have written values, and so raises the store's version") {
  Graph graph;
  const Node total = graph.buffer("total", type);
  graph.update(total, total + 1);
  ParameterStore store({{"total", type, ParameterRole::buffer, Initialiser::zeros()}});
  VM vm(compile(graph, {}, test_backend()), test_backend(), {.store = &store, .host_points = {{1}}});
  const std::uint64_t before = store.version();
  const auto breaks = [](std::size_t) { throw std::runtime_error("the host"); };
  CHECK_THROWS_AS(run_with_points(vm, {}, breaks), std::runtime_error);
  CHECK(store.version() > before);
}

TEST_CASE("a run that fails tells its failure, even where its end cannot be marked") {
  struct Marks final : Event {
    std::unique_ptr<Event> inner;
    const bool& broken;
    Marks(std::unique_ptr<Event> event, const bool& is_broken) : inner(std::move(event)), broken(is_broken) {}
    void record(Stream stream) override {
      if (broken) throw DeviceError("no event can be recorded");
      inner->record(stream);
    }
    void signal() override { inner->signal(); }
    void reset() override { inner->reset(); }
    void hold(Stream stream) override { inner->hold(stream); }
    bool passed() const override { return inner->passed(); }
    void wait() override { inner->wait(); }
  };
  struct Marking final : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    bool broken = false;
    std::unique_ptr<Event> make_event() override {
      return std::make_unique<Marks>(inner().make_event(), broken);
    }
  };
  Marking backend(test_backend());
  Sum sum;
  const auto breaks = [](std::size_t) { throw std::runtime_error("the host"); };
  VM vm(compile(sum.graph, sum.outputs, backend), backend, {.host_points = {{0}}});
  for (int round = 0; round < 3; ++round) {
    // On other devices the feeds need events, too, and the fault would hit those.
    backend.broken = backend.info().host_memory;
    if (backend.broken)
      CHECK_THROWS_WITH_AS(run_with_points(vm, {{"left", filled(1)}, {"right", filled(2)}}, breaks),
                           "the host", std::runtime_error);
    backend.broken = false;
    vm.run({{"left", filled(1)}, {"right", filled(3)}});
    CHECK(vm.output() == filled(4));
  }
}

TEST_CASE("programs that never run together share memory") {
  Graph graph;
  const Node x = graph.input("x", type);
  const std::vector<ProgramOutput> small{{.node = exp(x)}};
  const std::vector<ProgramOutput> large{{.node = exp(x)}, {.node = tanh(x)}, {.node = sqrt(x)}};
  const auto a = compile(graph, small, test_backend());
  const auto b = compile(graph, large, test_backend());
  const auto workspace = std::make_shared<Workspace>(test_backend(), b->arena_bytes);
  VM first(a, test_backend(), {.workspace = workspace});
  VM second(b, test_backend(), {.workspace = workspace});
  for (int i = 0; i < 3; ++i) {
    second.run({{"x", filled(1)}});
    CHECK(second.output(2) == filled(1));
    first.run({{"x", filled(0)}});
    CHECK(first.output() == filled(1));
  }
  const auto tiny = std::make_shared<Workspace>(test_backend(), 64);
  says(user_error([&] { VM(b, test_backend(), {.workspace = tiny}); }), {"has 64 bytes", "192"});
}

TEST_CASE("a store is needed where parameters are read, and must be the backend's own") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = graph.parameter("w", type) * 2}};
  const auto program = compile(graph, outputs, test_backend());
  says(user_error([&] { VM(program, test_backend()); }), {"give it the store"});
  ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()}});
  const auto another = open_backend("portable");
  store.place(program->placement, *another);
  says(user_error([&] { VM(program, test_backend(), {.store = &store}); }), {"another backend"});
}

TEST_CASE("no elements are no trouble") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {0, 3}});
  const std::vector<ProgramOutput> outputs{{.node = exp(x) + 1}};
  VM vm(compile(graph, outputs, test_backend()), test_backend());
  for (int i = 0; i < 3; ++i) {
    vm.run({{"x", Tensor({DType::float32, {0, 3}})}});
    CHECK(vm.output().elements() == 0);
  }
}

}  // namespace plexaura::testing::vm_test

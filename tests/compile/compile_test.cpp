#include "core/compile/compile.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/compile/link.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/check_program.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::compile_test {

namespace {

const TensorType vector{DType::float32, {16}};
const TensorType images{DType::float32, {2, 3, 6, 6}};
const TensorType filter{DType::float32, {5, 3, 3, 3}};

std::shared_ptr<const Program> compiled(const Graph& graph, const std::vector<Node>& nodes,
                                        const CompileOptions& options = {}) {
  std::vector<ProgramOutput> outputs;
  for (const Node& node : nodes) outputs.push_back({.node = node});
  return compile(graph, outputs, test_backend(), options);
}

std::size_t count_of(const Program& program, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      program.instructions,
      [&](const Instruction& instruction) { return instruction.name.starts_with(op); }));
}

// Checks that a compiled program computes the values of a step-by-step run.
void check_like_plain(const Graph& graph, const std::vector<Node>& nodes,
                      const std::vector<std::pair<std::string, Tensor>>& inputs) {
  const auto fast = compiled(graph, nodes);
  CHECK(check_arena(*fast) == "");
  VM vm(fast, test_backend());
  VM plain(compiled(graph, nodes, {.optimise = false}), test_backend());
  std::vector<Feed> feeds;
  for (const auto& [name, tensor] : inputs) feeds.emplace_back(name, tensor);
  for (int run = 0; run < 3; ++run) vm.run(feeds);
  plain.run(feeds);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto left = vm.output(i).to_doubles();
    const auto right = plain.output(i).to_doubles();
    for (std::size_t k = 0; k < left.size(); ++k) CHECK(left[k] == doctest::Approx(right[k]).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("a chain of elementwise ops works in place, and never in an input or output") {
  Graph graph;
  const Node x = graph.input("x", vector);
  const Node a = exp(x);
  const auto program = compiled(graph, {tanh(sqrt(a)) + 1, a});
  CHECK(check_arena(*program) == "");
  // 64 bytes for `a`, which is read at the end, and 64 bytes that all other values share.
  CHECK(program->arena_bytes == 128);
  for (const auto& instruction : program->instructions)
    for (const auto& output : instruction.outputs) CHECK(output->place.space == Place::Space::arena);
  CHECK(compiled(graph, {a}, {.optimise = false})->arena_bytes >= 64);
}

TEST_CASE("the check of an arena finds a workspace that overlaps an input or an output") {
  Graph graph;
  const Node x = graph.input("x", vector);
  const auto made = compiled(graph, {tanh(exp(x)) + exp(x)}, {.optimise = false});
  Program& program = *std::const_pointer_cast<Program>(made);
  Instruction& last = program.instructions.back();
  REQUIRE(check_arena(program) == "");
  last.workspace_bytes = 64;
  last.workspace = last.outputs[0]->place;
  CHECK(check_arena(program).find("over its workspace") != std::string::npos);
  last.workspace = last.inputs[0]->place;
  CHECK(check_arena(program).find("last written by its workspace") != std::string::npos);
}

TEST_CASE("the graph after each pass can be looked at") {
  Graph graph;
  const Node x = graph.input("x", vector);
  exp(x);  // read by nobody
  const Node y = tanh(x) * tanh(x);
  std::vector<std::pair<std::string, std::size_t>> passes;
  compiled(graph, {y}, {.after_pass = [&](std::string_view pass, const Graph& after) {
             passes.emplace_back(pass, after.size());
           }});
  CHECK(passes == std::vector<std::pair<std::string, std::size_t>>{
                      {"verify", 5}, {"prune", 4}, {"merge", 3}, {"fold", 3}});
}

TEST_CASE("a value that is read twice by one kernel, or later, is not worked in") {
  Graph graph;
  const Node x = graph.input("x", vector);
  const Node a = exp(x);
  const Node twice = a * a;
  const Node later = reshape(a, {4, 4});
  Tensor ones(vector);
  for (float& element : ones.as<float>()) element = 1;
  check_like_plain(graph, {twice + 1, sum(later, {.axes = {0}}), tanh(twice)}, {{"x", ones}});
}

TEST_CASE("views are aliases and need no instruction") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 4}});
  const Node seen = reshape(reshape(exp(x), {16}), {2, 8});
  const auto program = compiled(graph, {seen});
  CHECK(program->instructions.size() == 1);
  VM vm(program, test_backend());
  vm.run({{"x", Tensor({DType::float32, {4, 4}})}});
  CHECK(vm.output().to_doubles() == std::vector<double>(16, 1));
  CHECK(vm.output().shape() == Shape{2, 8});
}

TEST_CASE("views of inputs, constants and of nothing else can be outputs") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 2}});
  const Node c = graph.constant(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const auto program = compiled(graph, {x, reshape(x, {4}), c, reshape(c, {4})});
  CHECK(program->instructions.empty());
  VM vm(program, test_backend());
  vm.run({{"x", Tensor::of<float>({2, 2}, {5, 6, 7, 8})}});
  CHECK(vm.output(1).to_doubles() == std::vector<double>{5, 6, 7, 8});
  CHECK(vm.output(3).to_doubles() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("a reorder is made once for all who need it") {
  Graph graph;
  const Node x = graph.input("x", images);
  const Node w = graph.input("w", filter);
  const Node v = graph.input("v", filter);
  const auto program = compiled(graph, {conv2d(x, w), conv2d(x, v), max_pool2d(x, {.kernel = {2, 2}})});
  std::vector<std::string> made;
  for (const auto& instruction : program->instructions)
    if (instruction.name.starts_with("reorder"))
      made.push_back(fmt::format("{} to {}", instruction.inputs[0]->value.node,
                                 to_string(instruction.outputs[0]->layout)));
  std::ranges::sort(made);
  CHECK(std::ranges::adjacent_find(made) == made.end());
  CHECK(made.size() == program->reorders);
  for (const auto& instruction : program->instructions)
    if (instruction.name.starts_with("reorder"))
      CHECK(instruction.inputs[0]->layout != instruction.outputs[0]->layout);
}

TEST_CASE("what a training step computes lies where the plan says, whole") {
  Graph graph;
  const Node x = graph.input("x", images);
  const Node w = graph.input("w", filter);
  const Node s = graph.input("s", {DType::float32, {5}});
  const Node norm = batch_norm(conv2d(x, w), s, s).y;
  const Node hidden = relu(norm + conv2d(x, w * 2));
  const Node loss = sum(square(max_pool2d(hidden, {.kernel = {2, 2}}))) + sum(tanh(reshape(hidden, {2, 80})));
  std::vector<Node> nodes = gradients(loss, {x, w, s});
  nodes.push_back(loss);
  Random random(1);
  check_like_plain(graph, nodes,
                   {{"x", random.tensor(images, -1, 1)},
                    {"w", random.tensor(filter, -1, 1)},
                    {"s", random.tensor({DType::float32, {5}}, 0.5, 1)}});
}

TEST_CASE("what a kernel names but does not read dies before it") {
  const TensorType logits_type{DType::float32, {64, 100}};
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {64, 8}});
  const Node w = graph.input("w", {DType::float32, {8, 100}});
  const Node labels = graph.input("labels", {DType::int64, {64}});
  const Node logits = matmul(x, w);
  const Node loss = softmax_cross_entropy(logits, labels);
  const Node slope = gradients(loss, {logits})[0];
  const auto program = compiled(graph, {slope});
  const auto backward = std::ranges::find_if(program->instructions, [](const Instruction& instruction) {
    return instruction.name.starts_with("softmax_cross_entropy_grad");
  });
  REQUIRE(backward != program->instructions.end());
  CHECK(!backward->inputs[0]);
  CHECK(backward->inputs[2]);
  // The memory holds the probabilities, and in a second place the logits or later the gradient.
  CHECK(program->arena_bytes < 3 * static_cast<std::size_t>(logits_type.bytes()));
  Random random(1);
  Tensor classes(labels.type());
  for (std::int64_t i = 0; i < 64; ++i) classes.as<std::int64_t>()[static_cast<std::size_t>(i)] = i;
  check_like_plain(
      graph, {slope, loss},
      {{"x", random.tensor(x.type(), -1, 1)}, {"w", random.tensor(w.type(), -1, 1)}, {"labels", classes}});
}

TEST_CASE("an input that one place of a kernel does not read and another does is read") {
  Graph graph;
  const Node probabilities = graph.input("p", {DType::float32, {2, 3}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  const std::vector<Node> inputs{probabilities, labels, probabilities,
                                 graph.input("grad", {DType::float32, {}})};
  const Node slope = graph.append(std::make_shared<SoftmaxCrossEntropyGrad>(CrossEntropyOptions{}), inputs,
                                  Graph::Where::current())[0];
  check_like_plain(graph, {slope},
                   {{"p", Tensor::of<float>({2, 3}, {0.5, 0.25, 0.25, 0, 1, 0})},
                    {"labels", Tensor::of<std::int64_t>({2}, {0, 2})},
                    {"grad", Tensor::of<float>({}, {2})}});
}

TEST_CASE("the prologue holds what derives from parameters, and nothing random or of a training program") {
  Graph graph;
  const Node w = graph.parameter("w", vector);
  const Node derived = exp(w * 2);
  const Node dropped = dropout(w, {.p = 0.5});
  const Node x = graph.input("x", vector);
  const auto program = compiled(graph, {derived + x, dropped + x});
  CHECK(program->prologue.size() == 2);
  CHECK(count_of(*program, "dropout") == 1);
  CHECK(compiled(graph, {derived + x}, {.optimise = false})->prologue.empty());
  const std::vector<ProgramOutput> training{{.node = derived + x, .gradient_of = "w"}};
  CHECK(compile(graph, training, test_backend())->prologue.empty());
  graph.update(graph.buffer("b", vector), x);
  CHECK(compiled(graph, {derived + x})->prologue.empty());
  CHECK(!compiled(graph, {derived + x}, {.apply_updates = false})->prologue.empty());
}

TEST_CASE("the placement holds trainables in the order in which backward ends, then buffers, then the rest") {
  Graph graph;
  Node y = graph.input("x", vector);
  std::vector<Node> parameters;
  for (const char* name : {"first", "second", "third", "still"}) {
    parameters.push_back(graph.parameter(name, vector));
    y = tanh(y * parameters.back());
  }
  const Node seen = graph.buffer("seen", vector);
  graph.update(seen, seen + y);
  const auto found = gradients(sum(y), {parameters[0], parameters[1], parameters[2]});
  std::vector<ProgramOutput> outputs;
  for (std::size_t i = 0; i < 3; ++i)
    outputs.push_back({.node = found[i],
                       .gradient_of = std::string(i == 0   ? "first"
                                                  : i == 1 ? "second"
                                                           : "third")});
  outputs.push_back({.node = seen, .gradient_of = "seen"});
  const auto program = compile(graph, outputs, test_backend(), {.apply_updates = false});
  std::vector<std::string> names;
  for (const auto& entry : program->placement.entries) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"third", "second", "first", "seen", "still"});
  // A bucket is final after its last write, also in a program that adds to gradients. The first use of each
  // bucket is known, too.
  const auto adding = add_to_gradients(*program, make_buckets(program->placement, 1), test_backend());
  for (const auto& finishing : {program, adding}) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& entry = program->placement.entries[i];
      const std::size_t ready = finishing->gradients_ready_after(entry.offset + entry.count);
      CHECK(ready > before);
      before = ready;
      const auto writes = [](const Instruction& instruction) {
        return instruction.outputs[0] && instruction.outputs[0]->place.space == Place::Space::gradient;
      };
      if (i < 2)
        CHECK(std::ranges::any_of(finishing->instructions.begin() + static_cast<std::ptrdiff_t>(ready),
                                  finishing->instructions.end(),
                                  [&](const Instruction& later) { return !writes(later); }));
    }
  }
  const auto& third = program->placement.entries[0];
  const auto& first = program->placement.entries[2];
  CHECK(program->first_use(first.offset, first.offset + first.count) <
        program->first_use(third.offset, third.offset + third.count));
}

// A strategy may write to a gradient as soon as the program does not read it any more.
TEST_CASE("a gradient is ready behind the last instruction that reads it") {
  Graph graph;
  const Node w = graph.parameter("w", vector);
  const Node gradient = gradients(sum(tanh(graph.input("x", vector) * w)), {w})[0];
  const std::vector<ProgramOutput> outputs{{.node = gradient, .gradient_of = "w"}, {.node = exp(gradient)}};
  const auto program = compile(graph, outputs, test_backend());
  const auto& entry = program->placement.entries[0];
  const auto& instructions = program->instructions;
  const auto reads = [](const Instruction& instruction) {
    return std::ranges::any_of(instruction.inputs, [](const std::optional<Slot>& slot) {
      return slot && slot->place.space == Place::Space::gradient;
    });
  };
  REQUIRE(std::ranges::any_of(instructions, reads));
  const auto ready = static_cast<std::ptrdiff_t>(program->gradients_ready_after(entry.offset + entry.count));
  CHECK(std::none_of(instructions.begin() + ready, instructions.end(), reads));
}

TEST_CASE("gradients that do not read their parameter, and parameters that nobody reads, have a place") {
  Graph graph;
  const Node w = graph.parameter("w", vector);
  const Node x = graph.input("x", vector);
  const Node loss = sum(w * x);
  const std::vector<ProgramOutput> outputs{{.node = gradients(loss, {w})[0], .gradient_of = "w"}};
  const auto program = compile(graph, outputs, test_backend());
  REQUIRE(program->placement.find("w") != nullptr);
  CHECK(program->placement.find("w")->role == ParameterRole::trainable);
  ParameterStore store({{"w", vector, ParameterRole::trainable, Initialiser::zeros()}});
  VM vm(program, test_backend(), {.store = &store});
  Tensor fed(vector);
  fed.as<float>()[3] = 5;
  vm.run({{"x", fed}});
  vm.wait();
  CHECK(store.read_gradient("w") == fed);

  Graph idle;
  const auto only = compiled(idle, {idle.parameter("w", vector)}, {.placement = &store.placement()});
  VM reader(only, test_backend(), {.store = &store});
  reader.run({});
  CHECK(reader.output() == store.read("w"));
}

TEST_CASE("passes are printed in their order, and the program with its places and lines") {
  Graph graph;
  const Node x = graph.input("x", vector);
  const int line = __LINE__ + 1;
  const Node y = exp(x);
  const auto program = compiled(graph, {y + exp(x)});
  std::string passes;
  for (const std::string& pass : program->passes) passes += pass.substr(0, pass.find(':')) + " ";
  CHECK(passes == "verify prune merge fold bind plan memory ");
  CHECK(program->passes[2] == "merge: 3 nodes");
  CHECK(program->passes[4] == "bind: 2 kernels, 0 of them reorders, 0 in the prologue");
  CHECK(program->passes[5] == "plan memory: arena 128 bytes (lower bound 128), prologue 0 bytes");
  const std::string text = program->to_text();
  CHECK(text.find("exp %") != std::string::npos);
  CHECK(text.find(fmt::format("compile_test.cpp:{}", line)) != std::string::npos);
  CHECK(text.find("@arena+0 64B") != std::string::npos);
  CHECK(count_of(*program, "exp") == 1);
  CHECK(text.find("pass bind: 2 kernels") != std::string::npos);
  const auto plain = compiled(graph, {y + exp(x)}, {.optimise = false});
  CHECK(plain->instructions.size() == 3);
  REQUIRE(plain->passes.size() == 4);  // passes without merge and fold
  CHECK(plain->passes[2].starts_with("bind: 3 kernels"));
}

TEST_CASE("the log tells what of a program is reordered, and what stands in its prologue") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", images);
  const auto program = compiled(graph, {conv2d(x, graph.parameter("w", filter) * 2)});
  CHECK(program->passes[4] == fmt::format("bind: {} kernels, {} of them reorders, {} in the prologue",
                                          program->instructions.size() + program->prologue.size(),
                                          program->reorders, program->prologue.size()));
  CHECK(!program->prologue.empty());
  CHECK(program->passes[5] == fmt::format("plan memory: arena {} bytes (lower bound {}), prologue {} bytes",
                                          program->arena_bytes, program->estimates.arena_lower_bound,
                                          program->prologue_bytes));
}

TEST_CASE("plans are equal where programs are") {
  const auto hash = [](double factor, const Shape& shape) {
    Graph graph;
    return compiled(graph, {graph.input("x", {DType::float32, shape}) * factor})->plan_hash();
  };
  CHECK(hash(2, {4}) == hash(2, {4}));
  CHECK(hash(2, {4}) != hash(2, {5}));
  const auto hash_of = [](auto op) {
    Graph graph;
    return compiled(graph, {op(graph.input("x", vector))})->plan_hash();
  };
  CHECK(hash_of([](const Node& x) { return exp(x); }) != hash_of([](const Node& x) { return tanh(x); }));
}

TEST_CASE("outputs of other graphs and gradients of frozen parameters are refused") {
  Graph graph;
  Graph other;
  CHECK(user_error([&] { compiled(graph, {other.input("x", vector)}); }).find("another graph") !=
        std::string::npos);
  const Node w = graph.parameter("w", vector);
  Placement placement;
  placement.append("w", vector, ParameterRole::frozen, Layout::row_major(1));
  const std::vector<ProgramOutput> outputs{{.node = w * 2, .gradient_of = "w"}};
  CHECK(user_error([&] {
          compile(graph, outputs, test_backend(), {.placement = &placement});
        }).find("frozen") != std::string::npos);
  const Node other_weight = graph.parameter("u", vector);
  CHECK(user_error([&] { compiled(graph, {other_weight}, {.placement = &placement}); })
            .ends_with(
                "the placement that was given lacks 'u'; give that of the store which make_store() made of "
                "this model"));
}

TEST_CASE(
    "with the placement of a store that is not placed yet the program makes one, of the store's types") {
  Graph graph;
  const Node x = graph.input("x", vector);
  const Node w = graph.parameter("w", vector);
  ParameterStore store({{"w", vector, ParameterRole::trainable, Initialiser::ones()}});
  const ArenaTypes types{DType::float32, DType::float32, DType::float64};
  store.set_types(types);
  const std::vector<ProgramOutput> outputs{{.node = gradients(sum(x * w), {x})[0]}};
  const auto program = compile(graph, outputs, test_backend(), {.placement = &store.placement()});
  CHECK(program->placement.types == types);
  VM vm(program, test_backend(), {.store = &store});
  vm.run({{"x", Tensor(vector)}});
  CHECK(vm.output() == store.read("w"));
}

TEST_CASE("outputs that have no place are refused") {
  Graph graph;
  const Node w = graph.parameter("weight", vector);
  const Node loss = sum(w);
  const auto refuses = [&](const std::vector<ProgramOutput>& outputs, std::string_view words) {
    const std::string text = user_error([&] { compile(graph, outputs, test_backend()); });
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  refuses({{.node = w, .gradient_of = "wieght"}}, "no such parameter; did you mean 'weight'?");
  refuses({{.node = loss, .gradient_of = "weight"}},
          "the gradient of 'weight' is float32[] and must be float32[16]");
  refuses({{.node = w, .gradient_of = "weight"}, {.node = exp(w), .gradient_of = "weight"}},
          "two outputs have the same");
  refuses({{.node = loss, .tail = TailSlot(tail_count)}}, "slot 16 of the tail, which has 16");
  refuses({{.node = w, .tail = TailSlot::loss}}, "slot 0 of the tail would get float32[16]");
  refuses({{.node = cast(loss, DType::int64), .tail = TailSlot::loss}},
          "slot 0 of the tail would get int64[]");
  refuses({{.node = cast(loss, DType::float64), .tail = TailSlot::samples}}, "slot 1 of the tail");
  refuses({{.node = loss, .tail = TailSlot::loss}, {.node = exp(loss), .tail = TailSlot::loss}},
          "two outputs have the same");
  refuses({{.node = w, .gradient_of = "weight", .tail = TailSlot::loss}}, "slot 0 of the tail");
  Graph scalars;
  const Node s = scalars.parameter("s", {DType::float32, {}});
  CHECK(user_error([&] {
          const std::vector<ProgramOutput> both{{.node = s, .gradient_of = "s", .tail = TailSlot::loss}};
          compile(scalars, both, test_backend());
        }).find("an output has two places, or two outputs have the same") != std::string::npos);
  const std::vector<ProgramOutput> sound{{.node = w, .gradient_of = "weight"},
                                         {.node = loss, .tail = TailSlot(tail_count - 1)}};
  CHECK_NOTHROW(compile(graph, sound, test_backend()));
}

}  // namespace plexaura::testing::compile_test

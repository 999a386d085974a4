#include "core/ops/dropout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <stdexcept>

#include "core/compile/compile.h"
#include "core/ops/philox.h"
#include "core/ops/reduce.h"
#include "core/vm/vm.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/points.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::dropout_test {

namespace {

constexpr StepBlock block_of_cases{.step = 3, .seed = 5, .first_sample = 7};

// Returns the result of the first dropout of a graph.
Tensor expected_dropout(const Tensor& x, const DropoutOptions& options) {
  const Tensor mask = reference::dropout_mask(x.shape(), options, block_of_cases, Graph().next_stream());
  const Expected kept = reference::elementwise([](double value, double keep) { return value * keep; });
  Tensor y = kept(std::vector{x, mask})[0];
  for (double& value : y.as<double>()) value /= 1 - options.p;
  return y;
}

OpCase dropped(const std::string& name, Shape shape, DropoutOptions options) {
  OpCase op_case{"dropout, " + name,
                 "dropout",
                 [=](Graph&, auto x) { return std::vector{dropout(x[0], options)}; },
                 {{std::move(shape)}},
                 [=](auto x) { return std::vector{expected_dropout(x[0], options)}; }};
  op_case.block = block_of_cases;
  return op_case;
}

const Cases cases({
    dropped("rows", {4, 9}, {.p = 0.3}),
    dropped("images", {2, 3, 3, 5}, {.p = 0.6}),
    dropped("no batch", {11}, {.p = 0.5, .batch = false}),
    dropped("a scalar", {}, {.p = 0.5}),
    dropped("no samples", {0, 4}, {.p = 0.5}),
    {"dropout_grad",
     "dropout_grad",
     [](Graph&, auto x) { return std::vector{dropout_grad(x[0], x[1], 0.25)}; },
     {{{3, 5}}, {{3, 5}, whole(0, 2), DType::boolean}},
     reference::elementwise([](double grad, double mask) { return mask != 0 ? grad / 0.75 : 0; })},
});

const WrongCases wrong({
    {"dropout of everything",
     "dropout",
     [](Graph& graph) {
       dropout(graph.input("x", {DType::float32, {2}}), {.p = 1});
     },
     {"at least 0 and less than 1", "not 1"}},
    {"dropout with a negative probability, for inference",
     "dropout",
     [](Graph&) {
       Graph inference(Mode::inference);
       dropout(inference.input("x", {DType::float32, {2}}), {.p = -0.1});
     },
     {"at least 0 and less than 1", "not -0.1"}},
    {"dropout of integers",
     "dropout",
     [](Graph& graph) {
       dropout(graph.input("x", {DType::int64, {2}}));
     },
     {"cast()"}},
    {"dropout_grad, another mask",
     "dropout_grad",
     [](Graph& graph) {
       dropout_grad(graph.input("g", {DType::float32, {2}}), graph.input("m", {DType::boolean, {3}}), 0.5);
     },
     {"mask must be bool"}},
});

// Returns the mask of a dropout over [samples, width] in one run.
std::vector<double> mask_of(std::int64_t samples, std::int64_t width, const StepBlock& block,
                            Backend& backend) {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {samples, width}});
  const Node mask = output_of(dropout(x, {.p = 0.4}), 1);
  return Runner(graph, {mask}, backend)({Tensor(x.type())}, block)[0].to_doubles();
}

bool same_words(philox::Block block, const std::array<std::uint32_t, 4>& words) {
  return std::memcmp(block.words, words.data(), sizeof(block.words)) == 0;
}

}  // namespace

TEST_CASE("dropout: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("dropout: what it refuses") { check_all(wrong); }

// The known answers for philox4x32-10 that its authors publish with Random123 (kat_vectors).
TEST_CASE("philox gives the published numbers") {
  CHECK(same_words(philox::philox4x32_10({{0, 0, 0, 0}}, {{0, 0}}),
                   {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  CHECK(same_words(philox::philox4x32_10({{~0U, ~0U, ~0U, ~0U}}, {{~0U, ~0U}}),
                   {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  CHECK(same_words(
      philox::philox4x32_10({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}}),
      {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_CASE("ranks and micro-batches draw what one rank with the whole batch draws") {
  const std::vector<double> whole_batch =
      mask_of(7, 5, {.step = 2, .seed = 9, .first_sample = 0}, test_backend());
  const std::vector<double> first = mask_of(3, 5, {.step = 2, .seed = 9, .first_sample = 0}, test_backend());
  const std::vector<double> rest = mask_of(4, 5, {.step = 2, .seed = 9, .first_sample = 3}, test_backend());
  std::vector<double> joined = first;
  joined.insert(joined.end(), rest.begin(), rest.end());
  CHECK(joined == whole_batch);
}

TEST_CASE("dropout draws anew for each step, seed and op, and alike on every backend") {
  const std::vector<double> one = mask_of(8, 16, {.step = 1, .seed = 1}, test_backend());
  CHECK(one == mask_of(8, 16, {.step = 1, .seed = 1}, test_backend()));
  CHECK(one == mask_of(8, 16, {.step = 1, .seed = 1}, oracle()));
  CHECK(one != mask_of(8, 16, {.step = 2, .seed = 1}, test_backend()));
  CHECK(one != mask_of(8, 16, {.step = 1, .seed = 2}, test_backend()));
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {8, 16}});
  const Node a = dropout(x);
  const Node b = dropout(x);
  const auto results = Runner(graph, {output_of(a, 1), output_of(b, 1)}, test_backend())({Tensor(x.type())});
  CHECK(results[0].to_doubles() != results[1].to_doubles());
}

TEST_CASE("dropout draws anew in each run that is given no step, and the same in a second VM") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = dropout(graph.input("x", {DType::float32, {64}}))}};
  const auto program = compile(graph, outputs, test_backend());
  Tensor ones(TensorType{DType::float32, {64}});
  std::ranges::fill(ones.as<float>(), 1.F);
  VM vm(program, test_backend());
  VM other(program, test_backend());
  const auto drawn = [&](VM& by, auto... block) {
    by.run({{"x", ones}}, block...);
    return by.output();
  };
  const Tensor first = drawn(vm);
  const Tensor second = drawn(vm);
  CHECK(!(first == second));
  CHECK(drawn(other) == first);
  CHECK(drawn(other) == second);
  CHECK(drawn(other, StepBlock{.step = 1}) == first);
}

TEST_CASE("a run that fails draws nothing: the next one draws what it would have drawn") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = dropout(graph.input("x", {DType::float32, {64}}))}};
  const auto program = compile(graph, outputs, test_backend());
  Tensor ones(TensorType{DType::float32, {64}});
  std::ranges::fill(ones.as<float>(), 1.F);
  const auto breaks = [](std::size_t) { throw std::runtime_error("the host"); };
  VM undisturbed(program, test_backend());
  for (const std::size_t place :
       {std::size_t{0}, program->instructions.size()}) {  // before the draw, and after it
    CAPTURE(place);
    VM vm(program, test_backend(), {.host_points = {{place}}});
    for (const std::int64_t step : {1, 2, 3}) {
      CAPTURE(step);
      CHECK_THROWS_AS(vm.run({}), UserError);  // refused, because x was not fed
      CHECK_THROWS_AS(run_with_points(vm, {{"x", ones}}, breaks), std::runtime_error);
      vm.run({{"x", ones}});
      undisturbed.run({{"x", ones}}, {.step = static_cast<double>(step)});
      CHECK(vm.output() == undisturbed.output());
    }
  }
}

TEST_CASE("dropout keeps the mean, and as many elements as it says") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {100, 1000}});
  const Node y = dropout(x, {.p = 0.3});
  std::vector<float> ones(100000, 1.0F);
  const auto results = Runner(graph, {mean(y)}, test_backend())({Tensor::of<float>({100, 1000}, ones)});
  CHECK(results[0].to_doubles()[0] == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("dropout is x itself in inference, and with p = 0; the mode belongs to the graph") {
  Graph training(Mode::train);
  Graph inference(Mode::inference);
  const Node x = training.input("x", {DType::float32, {2}});
  const Node y = inference.input("x", {DType::float32, {2}});
  CHECK(same_value(dropout(y), y));
  CHECK(same_value(dropout(x, {.p = 0}), x));
  CHECK(!same_value(dropout(x), x));
}

TEST_CASE("dropouts with other probabilities are different ops") {
  CHECK(!(DropoutOp({{.p = 0.5}, 1}) == DropoutOp({{.p = 0.4}, 1})));
  CHECK(!(DropoutOp({{.p = 0.5}, 1}) == DropoutOp({{.p = 0.5}, 2})));
  CHECK(!(DropoutOp({{.p = 0.5}, 1}) == DropoutOp({{.p = 0.5, .batch = false}, 1})));
  CHECK(!(DropoutGrad({0.5}) == DropoutGrad({0.4})));
}

}  // namespace plexaura::testing::dropout_test

// Tests the kernels of normalisations of rows for CUDA (backends/cuda/kernels/row_norm.cu) on the simulated runtime.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/norms.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/backends/special_values.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/has_simulated_cuda.h"

namespace plexaura::testing::cuda_row_norm_test {

namespace {

// The bounds of the CPU's kernels: tests/backends/regions/row_norm_regions_test.cpp.
constexpr double bound = 2e-5;
constexpr double bound_of_float64 = 100 * bound_of_doubles;

using Normalise = std::function<Node(const Node& x, const Node& scale, const Node& shift)>;

const Normalise layer = [](const Node& x, const Node& scale, const Node& shift) {
  return layer_norm(x, scale, shift);
};
const Normalise root_mean_square = [](const Node& x, const Node& scale, const Node&) {
  return rms_norm(x, scale, {.epsilon = 1e-3});
};
const Normalise plain = [](const Node& x, const Node&, const Node&) { return standardise(x); };
const Normalise residual = [](const Node& x, const Node& scale, const Node& shift) {
  return layer_norm(x, scale, shift) * 0.5 + x;
};

Normalise group(std::int64_t groups) {
  return [=](const Node& x, const Node& scale, const Node& shift) {
    return group_norm(x, groups, scale, shift);
  };
}

// Returns a normalisation of x and its gradients by x, scale and shift. Scale and shift are float32 for an x of 16 bits.
std::vector<Node> with_gradients(Graph& graph, DType dtype, const Shape& shape, const Shape& affine,
                                 const Normalise& normalise) {
  const DType wide = dtype == DType::float64 ? dtype : DType::float32;
  const Node x = graph.input("x", {dtype, shape});
  const Node scale = graph.input("scale", {wide, affine});
  const Node shift = graph.input("shift", {wide, affine});
  const Node y = normalise(x, scale, shift);
  std::vector<Node> found{y};
  for (const Node& gradient :
       vjp(std::vector{y}, std::vector{graph.input("grad", y.type())}, std::vector{x, scale, shift}))
    if (!gradient.is_empty()) found.push_back(gradient);
  return found;
}

Agreement on_cuda(const BuildGraph& build, AgreementOptions options) {
  const auto cuda = open_backend("simulated_cuda");
  options.backend = cuda.get();
  return agreement(build, options);
}

Agreement on_cuda(const Shape& shape, const Shape& affine, const Normalise& normalise,
                  const AgreementOptions& options = {}) {
  return on_cuda(
      [&](Graph& graph, DType dtype) { return with_gradients(graph, dtype, shape, affine, normalise); },
      options);
}

// Draws x, scale, shift and the gradient of the result. The program does not read all of them.
std::vector<Tensor> drawn_operands(const Shape& shape, const Shape& affine, DType of_x, DType of_scale) {
  return {drawn({of_x, shape}, "x"), drawn({of_scale, affine}, "scale"), drawn({of_scale, affine}, "shift"),
          drawn({of_x, shape}, "grad")};
}

// Compares a normalisation of 16 bits and its gradients with those of the same values in double. on_cuda() would compare it
// with those of values that were not rounded to 16 bits, which differ where the elements of a row are nearly equal.
Agreement in_16_bits(const Shape& shape, const Shape& affine, const Normalise& normalise, DType dtype) {
  const auto cuda = open_backend("simulated_cuda");
  const auto portable = open_backend("portable");
  const std::vector<Tensor> values = drawn_operands(shape, affine, dtype, DType::float32);
  std::vector<Tensor> wide;
  for (const Tensor& value : values) wide.push_back(value.cast(DType::float64));
  Graph graph;
  const std::vector<Node> results = with_gradients(graph, dtype, shape, affine, normalise);
  Graph exact;
  const std::vector<Node> exact_results = with_gradients(exact, DType::float64, shape, affine, normalise);
  const std::vector<Tensor> found = Runner(graph, results, *cuda)(values);
  const std::vector<Tensor> expected = Runner(exact, exact_results, *portable)(wide);
  Agreement agreement;
  for (std::size_t i = 0; i < found.size(); ++i) agreement.errors.push_back(error_of(found[i], expected[i]));
  std::vector<ProgramOutput> outputs;
  for (const Node& node : results) outputs.push_back({node});
  agreement.program = compile(graph, outputs, *cuda)->to_text();
  return agreement;
}

struct RowCase {
  Shape shape;
  Shape affine;
};
// Rows of one group of elements, of several, and of none; one row; one element; more elements than a block reads at
// once; several axes.
const std::vector<RowCase> row_cases{{{3, 4}, {4}},    {{2, 5}, {5}},       {{40, 17}, {17}},
                                     {{70, 64}, {64}}, {{1, 129}, {129}},   {{64}, {64}},
                                     {{7, 1}, {1}},    {{2, 3, 16}, {16}},  {{5, 4, 7}, {4, 7}},
                                     {{300, 3}, {3}},  {{3, 4096}, {4096}}, {{2, 9001}, {9001}}};

double bound_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return bound_of_float64;
    case DType::bfloat16:
      return 0x1p-7;  // half the distance of two numbers, which is at most 1 / 128 of the larger one; twice
    case DType::float16:
      return 0x1p-10;
    default:
      return bound;
  }
}

}  // namespace

TEST_CASE("one kernel on CUDA computes a normalisation of rows, and one its gradients") {
  if (!has_simulated_cuda()) return;
  for (const auto& [shape, affine] : row_cases) {
    CAPTURE(to_string(shape));
    const std::vector<std::tuple<Normalise, std::string, std::string>> all{
        {layer, "(row_norm+scale+shift)", "(sub+row_norm_grad+scale_grad+shift_grad+scale)"},
        {root_mean_square, "(rms_norm+scale)", "(rms_norm_grad+scale_grad+scale)"},
        {residual, "(row_norm+scale+shift)", "(sub+row_norm_grad+scale_grad+shift_grad+scale+add)"}};
    for (const DType dtype : {DType::float32, DType::float64})
      for (const auto& [normalise, forward, backward] : all) {
        const Agreement result = on_cuda(shape, affine, normalise, {.dtype = dtype});
        CAPTURE(name_of(dtype));
        CAPTURE(result.program);
        CHECK(result.worst() < bound_of(dtype));
        CHECK(result.uses(forward));
        if (shape.rank() > affine.rank()) CHECK(result.uses(backward));
      }
    CHECK(on_cuda(shape, affine, plain).worst() < bound);
  }
}

TEST_CASE("a normalisation on CUDA reads and writes 16 bits without casts beside it") {
  if (!has_simulated_cuda()) return;
  for (const DType dtype : {DType::bfloat16, DType::float16})
    for (const auto& [shape, affine] : row_cases) {
      CAPTURE(name_of(dtype));
      CAPTURE(to_string(shape));
      const Agreement centred = in_16_bits(shape, affine, layer, dtype);
      CAPTURE(centred.program);
      CHECK(centred.worst() < bound_of(dtype));
      CHECK(centred.uses("(cast+row_norm+scale+shift+cast)"));
      const Agreement uncentred = in_16_bits(shape, affine, root_mean_square, dtype);
      CAPTURE(uncentred.program);
      CHECK(uncentred.worst() < bound_of(dtype));
      CHECK(uncentred.uses("(cast+rms_norm+scale+cast)"));
      if (shape.rank() == affine.rank()) continue;
      CHECK(centred.uses("(cast+sub+cast_x+row_norm_grad+scale_grad+shift_grad+scale+cast)"));
      CHECK(uncentred.uses("(cast+cast_x+rms_norm_grad+scale_grad+scale+cast)"));
    }
}

TEST_CASE("the rows of group_norm on CUDA have a scale for each channel") {
  if (!has_simulated_cuda()) return;
  const std::vector<std::pair<Shape, std::int64_t>> cases{
      {{2, 4, 3, 5}, 2}, {{3, 6, 7}, 3}, {{5, 8}, 2}, {{4, 4, 40}, 4}, {{1, 6, 8, 8}, 1}, {{3, 12, 1}, 4}};
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16})
    for (const auto& [shape, groups] : cases) {
      CAPTURE(name_of(dtype));
      CAPTURE(to_string(shape));
      const Agreement result = dtype == DType::bfloat16
                                   ? in_16_bits(shape, {shape[1]}, group(groups), dtype)
                                   : on_cuda(shape, {shape[1]}, group(groups), {.dtype = dtype});
      CAPTURE(result.program);
      CHECK(result.worst() < bound_of(dtype));
      CHECK(result.uses("row_norm+scale+shift"));
      CHECK(result.uses("row_norm_grad"));
    }
}

TEST_CASE("values within a normalisation on CUDA may be read from outside") {
  if (!has_simulated_cuda()) return;
  for (const DType of_x : {DType::float32, DType::bfloat16}) {
    const Agreement result = on_cuda(
        [&](Graph& graph, DType dtype) -> std::vector<Node> {
          const Node x = graph.input("x", {of_x == DType::float32 ? dtype : of_x, {6, 16}});
          const Node wide = cast(x, dtype);
          const Node scale = graph.input("scale", {dtype, {16}});
          const Node grad = graph.input("grad", {dtype, {6, 16}});
          const Node y = layer_norm(wide, scale, graph.input("shift", {dtype, {16}}));
          const Node by_x = vjp(std::vector{y}, std::vector{grad}, std::vector{wide})[0];
          return {y, cast(y, DType::bfloat16), by_x, cast(by_x, DType::bfloat16), wide * 2};
        },
        {});
    CAPTURE(result.program);
    CHECK(result.errors[0] < bound);
    CHECK(result.errors[1] < bound_of(DType::bfloat16));
    CHECK(result.errors[2] < bound);
    CHECK(result.errors[3] < bound_of(DType::bfloat16));
    CHECK(result.errors[4] == 0);
    CHECK(result.uses("row_norm+scale+shift+cast)"));
  }
}

TEST_CASE("a mean far from 0 costs a normalisation on CUDA no precision") {
  if (!has_simulated_cuda()) return;
  const AgreementOptions far{.low = 1000, .high = 1001};
  for (const std::int64_t extent : {300, 304, 9001}) {
    CHECK(on_cuda({40, extent}, {extent}, plain, far).errors[0] < 2e-4);
    CHECK(
        on_cuda({40, extent}, {extent}, layer, {.low = 1000, .high = 1001, .dtype = DType::float64}).worst() <
        1e-9);
  }
}

TEST_CASE("an element far from all others costs a normalisation on CUDA no precision") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  for (const std::size_t place : {0, 5, 303}) {
    CAPTURE(place);
    Tensor x = drawn({DType::float32, {3, 304}}, "x");
    x.as<float>()[304 + place] = 1e6F;
    const auto standardised_by = [&](Backend& backend, const Tensor& values) {
      Graph graph;
      const std::vector<Node> results{standardise(graph.input("x", values.type()))};
      return Runner(graph, results, backend)({values})[0];
    };
    const Tensor found = standardised_by(*cuda, x);
    CHECK(error_of(found, standardised_by(*open_backend("portable"), x.cast(DType::float64))) < bound);
  }
}

TEST_CASE("NaN and infinities spread in a normalisation on CUDA as in the portable kernels") {
  if (!has_simulated_cuda()) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
  const auto cuda = open_backend("simulated_cuda");
  const auto portable = open_backend("portable");
  for (const Normalise& normalise : {layer, root_mean_square, residual})
    for (const std::size_t spoilt : {0, 1, 2, 3})
      for (const float special : {not_a_number, infinity, -infinity, 0.F, 1e30F, 3e37F}) {
        CAPTURE(spoilt);
        CAPTURE(special);
        Graph graph;
        const std::vector<Node> results = with_gradients(graph, DType::float32, {3, 20}, {20}, normalise);
        std::vector<Tensor> values;
        for (const char* const name : {"x", "scale", "shift", "grad"})
          values.push_back(drawn({DType::float32, values.size() % 3 == 0 ? Shape{3, 20} : Shape{20}}, name));
        values[0].as<float>()[5] = 0;
        values[spoilt].as<float>()[spoilt == 0 ? 23 : 3] = special;
        const std::vector<Tensor> found = Runner(graph, results, *cuda)(values);
        const std::vector<Tensor> expected = Runner(graph, results, *portable)(values);
        check_special_values(found, expected, bound);
      }
}

TEST_CASE("rows of large equal numbers have the mean of the portable kernels on CUDA") {
  if (!has_simulated_cuda()) return;
  Tensor x({DType::float32, {2, 1000}});
  std::ranges::fill(x.as<float>(), 2e37F);
  Graph graph;
  const std::vector<Node> results{standardise(graph.input("x", x.type()))};
  const std::vector<double> found =
      Runner(graph, results, *open_backend("simulated_cuda"))({x})[0].to_doubles();
  CHECK(std::ranges::all_of(found, [](double value) { return value == 0; }));
}

TEST_CASE("normalisations on CUDA of values without elements") {
  if (!has_simulated_cuda()) return;
  for (const Shape& shape : {Shape{0, 4}, Shape{3, 0}}) CHECK(on_cuda(shape, {shape[1]}, layer).worst() == 0);
}

TEST_CASE("a normalisation on CUDA may take the memory of each operand that has elements") {
  if (!has_simulated_cuda()) return;
  const auto cuda = open_backend("simulated_cuda");
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    Graph graph;
    const std::vector<Node> results = with_gradients(graph, dtype, {9, 24}, {24}, residual);
    std::vector<Value> kept;
    for (const Node& node : results) kept.push_back(node.value());
    const Uses uses(graph, kept);
    int pairs = 0;
    for (NodeId id = 0; id < graph.size(); ++id)
      for (const Region& region : cuda->regions(graph, id, uses)) {
        if (region.kind.find("row_norm") == std::string::npos) continue;
        CAPTURE(region.kind);
        std::vector<Tensor> values;
        for (std::size_t i = 0; i < region.inputs.size(); ++i)
          values.push_back(drawn(graph.type(region.inputs[i]), fmt::format("input {}", i), {.low = 0.5}));
        RegionRun separate(*cuda, graph, region, values);
        separate.launch();
        separate.output(0).read();  // waits also where nothing follows
        for (const auto& pair : separate.candidate().in_place) {
          CAPTURE(pair.second);
          RegionRun in_place(*cuda, graph, region, values, {.in_place = {pair}});
          in_place.launch();
          ++pairs;
          for (std::size_t i = 0; i < region.outputs.size(); ++i)
            CHECK(in_place.output(i).read() == separate.output(i).read());
        }
      }
    CHECK(pairs >= 4);
  }
}

}  // namespace plexaura::testing::cuda_row_norm_test

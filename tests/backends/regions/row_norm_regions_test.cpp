#include "backends/regions/row_norm_regions.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/layer_norm.h"
#include "core/ops/norms.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/backends/special_values.h"
#include "tests/support/backend_fixture.h"

// Null in builds without OpenMP, such as that with the thread sanitizer.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::row_norm_regions_test {

namespace {

constexpr double bound = 2e-5;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

using Normalise = std::function<Node(const Node& x, const Node& scale, const Node& shift)>;

// Returns a normalisation of x and its gradients by x, scale and shift.
std::vector<Node> with_gradients(Graph& graph, DType dtype, const Shape& shape, const Shape& affine,
                                 const Normalise& normalise) {
  const Node x = graph.input("x", {dtype, shape});
  const Node scale = graph.input("scale", {dtype, affine});
  const Node shift = graph.input("shift", {dtype, affine});
  const Node y = normalise(x, scale, shift);
  std::vector<Node> found{y};
  for (const Node& gradient :
       vjp(std::vector{y}, std::vector{graph.input("grad", y.type())}, std::vector{x, scale, shift}))
    if (!gradient.is_empty()) found.push_back(gradient);
  return found;
}

Agreement agreement_with_gradients(const Shape& shape, const Shape& affine, const Normalise& normalise,
                                   const AgreementOptions& options = {}) {
  return agreement(
      [&](Graph& graph, DType dtype) { return with_gradients(graph, dtype, shape, affine, normalise); },
      options);
}

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
const Normalise residual_root_mean_square = [](const Node& x, const Node& scale, const Node&) {
  return rms_norm(x, scale, {.epsilon = 1e-3}) * 0.5 + x;
};

Normalise group(std::int64_t groups) {
  return [=](const Node& x, const Node& scale, const Node& shift) {
    return group_norm(x, groups, scale, shift);
  };
}

struct RowCase {
  Shape shape;
  Shape affine;
};
const std::vector<RowCase> row_cases{{{2, 5}, {5}},      {{3, 4}, {4}},       {{40, 17}, {17}},
                                     {{700, 33}, {33}},  {{1, 129}, {129}},   {{64}, {64}},
                                     {{2, 3, 16}, {16}}, {{5, 4, 7}, {4, 7}}, {{2, 3, 4, 5}, {4, 5}},
                                     {{2100, 3}, {3}},   {{3, 5000}, {5000}}};

}  // namespace

TEST_CASE("one kernel computes a normalisation of rows, and one its gradients") {
  for (const auto& [shape, affine] : row_cases) {
    CAPTURE(to_string(shape));
    const std::vector<std::tuple<Normalise, std::string, std::string>> all{
        {layer, "(row_norm+scale+shift)", "(row_norm_grad+scale_grad+shift_grad+scale)"},
        {root_mean_square, "(rms_norm+scale)", "(rms_norm_grad+scale_grad+scale)"},
        {residual, "(row_norm+scale+shift)", "(row_norm_grad+scale_grad+shift_grad+scale+add)"},
        {residual_root_mean_square, "(rms_norm+scale)", "(rms_norm_grad+scale_grad+scale+add)"}};
    for (const DType dtype : {DType::float32, DType::float64}) {
      const AgreementOptions options{.dtype = dtype};
      const double error = dtype == DType::float64 ? 100 * bound_of_doubles : bound;
      for (const auto& [normalise, forward, backward] : all) {
        const Agreement result = agreement_with_gradients(shape, affine, normalise, options);
        CAPTURE(result.program);
        CHECK(result.worst() < error);
        CHECK(result.uses(forward));
        if (shape.rank() > affine.rank()) {
          CHECK(result.uses(backward));
          CHECK_FALSE(result.uses("sqrt"));
        }
      }
      const Agreement result = agreement_with_gradients(shape, affine, plain, options);
      CHECK(result.worst() < error);
      CHECK(result.uses("(row_norm)"));
      CHECK(result.uses("(row_norm_grad)"));
    }
  }
}

TEST_CASE("the rows of group_norm and instance_norm have a scale for each channel") {
  const std::vector<std::pair<Shape, std::int64_t>> cases{
      {{2, 4, 3, 5}, 2}, {{3, 6, 7}, 3}, {{5, 8}, 2}, {{4, 4, 40}, 4}, {{1, 6, 5, 5}, 1}, {{3, 12, 1}, 4}};
  for (const auto& [shape, groups] : cases) {
    CAPTURE(to_string(shape));
    for (const DType dtype : {DType::float32, DType::float64}) {
      const Agreement result = agreement_with_gradients(shape, {shape[1]}, group(groups), {.dtype = dtype});
      CAPTURE(result.program);
      CHECK(result.worst() < (dtype == DType::float64 ? 100 * bound_of_doubles : bound));
      CHECK(result.uses("(row_norm+scale+shift)"));
      CHECK(result.uses("row_norm_grad"));
      CHECK_FALSE(result.uses("mean"));
    }
  }
}

TEST_CASE("a normalisation without gradients of scale and shift, and one without gradients") {
  for (const bool by_x : {true, false}) {
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node x = graph.input("x", {dtype, {9, 20}});
      const Node scale = graph.input("scale", {dtype, {20}});
      const Node y = layer_norm(x, scale, graph.input("shift", {dtype, {20}}));
      if (!by_x) return {y};
      return {y, vjp(std::vector{y}, std::vector{graph.input("grad", y.type())}, std::vector{x})[0]};
    });
    CAPTURE(result.program);
    CHECK(result.worst() < bound);
    CHECK(result.uses("(row_norm_grad+scale)") == by_x);
    CHECK_FALSE(result.uses("mean"));
  }
}

TEST_CASE("values within a normalisation may be read from outside") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {6, 10}});
    const Node scale = graph.input("scale", {dtype, {10}});
    const Node shift = graph.input("shift", {dtype, {10}});
    const ReduceOptions rows{.axes = {1}, .keepdims = true};
    const Node centred = x - mean(x, rows);
    const Node variance = mean(square(centred), rows);
    const Node grad = graph.input("grad", {dtype, {6, 10}});
    const Node y = layer_norm(x, scale, shift);
    return {y, centred, variance, grad * scale, vjp(std::vector{y}, std::vector{grad}, std::vector{x})[0]};
  });
  CHECK(result.worst() < bound);
}

TEST_CASE("formulas that only look like a normalisation are computed as they are") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {8, 8}});
    const Node z = graph.input("z", {dtype, {8, 8}});
    const ReduceOptions rows{.axes = {1}, .keepdims = true};
    const ReduceOptions columns{.axes = {0}, .keepdims = true};
    const auto over = [](const Node& part, const Node& variance) {
      return part * (1 / sqrt(variance + 1e-3));
    };
    const Node centred = x - mean(x, rows);
    return {over(centred, mean(square(x), rows)),
            over(x - mean(x, columns), mean(square(x - mean(x, columns)), columns)),
            over(x - mean(z, rows), mean(square(x - mean(z, rows)), rows)),
            over(centred, mean(square(centred), columns)),
            over(x, mean(square(x), columns)),
            over(x, mean(square(z), rows)),
            centred * (2 / sqrt(mean(square(centred), rows) + 1e-3)),
            over(centred, mean(square(centred), rows)) * mean(z, columns) + mean(z, rows),
            over(centred, mean(square(centred), rows)) * mean(z, rows) + mean(z, rows) * 2};
  });
  CHECK(result.worst() < bound);
}

TEST_CASE("a mean far from 0 costs no more precision than in the portable kernels") {
  const AgreementOptions far{.low = 1000, .high = 1001};
  CHECK(agreement_with_gradients({40, 300}, {300}, plain, far).errors[0] < 2e-4);
}

TEST_CASE("NaN and infinities spread as in the portable kernels") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Normalise& normalise : {layer, root_mean_square, residual})
    for (const std::size_t spoilt : {0, 1, 2, 3})
      for (const float special : {not_a_number, infinity, -infinity, 0.F, 1e30F}) {
        CAPTURE(spoilt);
        CAPTURE(special);
        Graph graph;
        const std::vector<Node> results = with_gradients(graph, DType::float32, {3, 20}, {20}, normalise);
        const auto computed_by = [&](Backend& backend) {
          std::vector<Tensor> values;
          for (std::size_t id = 0; id < 4; ++id) {
            const char* const names[] = {"x", "scale", "shift", "grad"};
            values.push_back(
                drawn({DType::float32, id == 1 || id == 2 ? Shape{20} : Shape{3, 20}}, names[id]));
          }
          values[0].as<float>()[5] = 0;
          values[spoilt].as<float>()[spoilt == 0 ? 23 : 3] = special;
          return Runner(graph, results, backend)(values);
        };
        const std::vector<Tensor> found = computed_by(*fast);
        const std::vector<Tensor> expected = computed_by(*portable);
        check_special_values(found, expected, bound);
      }
}

TEST_CASE("the number of threads changes no bit of a normalisation and its gradients") {
  if (omp_set_num_threads == nullptr) return;
  const auto backend = make_cpu_backend();
  const int threads = omp_get_max_threads();
  for (const auto& [shape, affine, normalise] : {std::tuple{Shape{700, 100}, Shape{100}, layer},
                                                 std::tuple{Shape{8, 12, 40, 20}, Shape{12}, group(3)}}) {
    Graph graph;
    const std::vector<Node> results = with_gradients(graph, DType::float32, shape, affine, normalise);
    const std::vector<Tensor> values{
        drawn({DType::float32, shape}, "x"), drawn({DType::float32, affine}, "scale"),
        drawn({DType::float32, affine}, "shift"), drawn({DType::float32, shape}, "grad")};
    Runner run(graph, results, *backend);
    omp_set_num_threads(1);
    const std::vector<Tensor> alone = run(values);
    for (const int count : {2, 3, 7}) {
      omp_set_num_threads(count);
      CHECK(run(values) == alone);
    }
    omp_set_num_threads(threads);
  }
}

TEST_CASE("a normalisation may take the memory of its input, and a gradient that of each operand") {
  const auto backend = make_cpu_backend();
  Graph graph;
  const std::vector<Node> results = with_gradients(graph, DType::float32, {9, 33}, {33}, residual);
  const auto region_of = [&](const std::string& kind) {
    const Uses uses(graph, std::vector<Value>{});
    for (NodeId id = 0; id < graph.size(); ++id)
      for (Region& region : backend->regions(graph, id, uses))
        if (region.kind == kind) return region;
    FAIL("there is no region " << kind);
    return Region{};
  };
  for (const char* kind : {"row_norm+scale+shift", "row_norm_grad+scale_grad+shift_grad+scale+add"}) {
    const Region region = region_of(kind);
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < region.inputs.size(); ++i)
      values.push_back(drawn(graph.type(region.inputs[i]), fmt::format("input {}", i), {.low = 0.5}));
    RegionRun separate(*backend, graph, region, values);
    separate.launch();
    for (const auto& pair : separate.candidate().in_place) {
      CAPTURE(pair.second);
      RegionRun in_place(*backend, graph, region, values, {.in_place = {pair}});
      in_place.launch();
      for (std::size_t i = 0; i < region.outputs.size(); ++i)
        CHECK(in_place.output(i).read() == separate.output(i).read());
    }
  }
}

}  // namespace plexaura::testing::row_norm_regions_test

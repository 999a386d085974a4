#include "core/ops/reduce.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "core/ops/pool2d.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::reduce_test {

namespace {

constexpr double bound = 1e-6;  // of blocks 32 terms are added up in float; all other sums are in double

}  // namespace

TEST_CASE("sums and means agree with the portable kernels in double over any axes") {
  const std::vector<std::pair<Shape, std::vector<std::vector<std::int64_t>>>> cases{
      {{50000}, {{}}},
      {{40, 70}, {{}, {0}, {1}}},
      {{6, 17, 5, 3}, {{}, {0, 2, 3}, {2, 3}, {1}, {0}, {3}, {1, 3}, {0, 2}}}};
  for (const auto& [shape, axes_of] : cases)
    for (const auto& axes : axes_of)
      for (const bool keepdims : {false, true}) {
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const Node x = graph.input("x", {dtype, shape});
              return {sum(x, {axes, keepdims}), mean(x, {axes, keepdims})};
            },
            {.low = 0, .high = 1});
        CHECK(result.worst() < bound);
      }
}

TEST_CASE("blocked values are reduced where they lie") {
  for (const std::int64_t channels : {1, 3, 16, 17, 40})
    for (const Layout& layout :
         {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)})
      for (const std::vector<std::int64_t>& axes :
           std::vector<std::vector<std::int64_t>>{{}, {0, 2, 3}, {2, 3}, {1}, {1, 2, 3}}) {
        CAPTURE(channels);
        CAPTURE(to_string(layout));
        const Agreement result = agreement_of_node(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {sum(graph.input("x", {dtype, {3, channels, 7, 9}}), {axes})};
            },
            {layout}, {.low = 0, .high = 1});
        CHECK(result.worst() < bound);
      }
}

TEST_CASE("reductions of every number agree with the portable kernels over any axes") {
  const std::vector<std::pair<Shape, std::vector<std::vector<std::int64_t>>>> cases{
      {{40000}, {{0}}},
      {{40, 70}, {{0, 1}, {0}, {1}}},
      {{6, 17, 5, 3}, {{0, 2, 3}, {2, 3}, {1}, {0}, {0, 2}}}};
  const std::vector<DType> exact{DType::int64, DType::int32};
  const std::vector<DType> numbers{DType::float64, DType::float32, DType::bfloat16,
                                   DType::float16, DType::int64,   DType::int32};
  for (const auto& [shape, axes_of] : cases)
    for (const auto& axes : axes_of) {
      CAPTURE(to_string(shape));
      const auto of = [&, &shape = shape](Node (*op)(Operand, ReduceOptions)) {
        return [&, op](Graph& graph, DType dtype) { return op(graph.input("x", {dtype, shape}), {axes}); };
      };
      check_bits(of(max), numbers);
      check_bits(of(min), numbers);
      check_bits(of(sum), exact, {.labels = 1000000});
    }
}

TEST_CASE("sums of doubles and of 16 bits are those of the exact terms") {
  for (const Shape& shape : {Shape{20000}, Shape{37, 70}, Shape{5, 17, 33}})
    for (const DType dtype : {DType::float64, DType::bfloat16, DType::float16})
      for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
        CAPTURE(name_of(dtype));
        Graph graph;
        const Node x = graph.input("x", {dtype, shape});
        const std::vector<Node> of_dtype{sum(x, {{axis}}), mean(x, {{axis}})};
        const std::vector<Node> exact{sum(cast(x, DType::float64), {{axis}}),
                                      mean(cast(x, DType::float64), {{axis}})};
        const auto fast = make_cpu_backend();
        const auto portable = make_portable_backend();
        const Tensor value = drawn(x.type(), "x", {.low = 0, .high = 1});
        const std::vector<Tensor> found = Runner(graph, of_dtype, *fast)({value});
        const std::vector<Tensor> wanted = Runner(graph, exact, *portable)({value});
        const double error = dtype == DType::float64 ? 1e-15 : dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11;
        for (std::size_t output = 0; output < found.size(); ++output) {
          const std::vector<double> own = found[output].to_doubles();
          const std::vector<double> expected = wanted[output].to_doubles();
          for (std::size_t i = 0; i < own.size(); ++i)
            CHECK(std::abs(own[i] - expected[i]) <= error * expected[i]);
        }
      }
}

TEST_CASE("terms of columns that cancel leave the sum of the others") {
  const std::vector<std::pair<DType, std::vector<double>>> cases{
      {DType::float32, {1e8, 1, -1e8}},
      {DType::float32, {3e38, 3e38, -3e38, -3e38}},
      {DType::float16, {60000, 0.001, -60000}},
      {DType::bfloat16, {3e38, 3e38, -3e38, -3e38}}};
  for (const auto& [of_terms, terms] : cases)
    for (const std::int64_t columns : {16, 40, 70}) {
      if (of_terms == DType::float32 && columns == 16) continue;  // such rows are added up in float
      CAPTURE(columns);
      std::vector<double> values;
      for (const double term : terms) values.insert(values.end(), static_cast<std::size_t>(columns), term);
      const Tensor rows = Tensor::of<double>({static_cast<std::int64_t>(terms.size()), columns}, values);
      check_bits([&](Graph& graph, DType dtype) { return sum(graph.constant(rows.cast(dtype)), {{0}}); },
                 {of_terms});
    }
}

TEST_CASE("the first zero in logical order is the extreme in every layout") {
  const auto backend = make_cpu_backend();
  std::vector<float> values(64, -1);
  values[3] = -0.F;  // channel 0
  values[4] = 0;     // channel 1, which channels_last() and blocks put before values[3]
  for (const Layout& layout : {Layout::row_major(4), channels_last(), blocked_channels(16)})
    for (const bool largest : {false, true}) {
      CAPTURE(to_string(layout));
      Graph graph;
      const Node x = graph.input("x", {DType::float32, {1, 16, 2, 2}});
      const ReduceOptions all_but_images{{1, 2, 3}};
      const Node extreme = largest ? max(x, all_but_images) : min(x, all_but_images);
      std::vector<float> signed_values = values;
      if (!largest)
        for (float& value : signed_values) value = value == 0 ? value : 1;
      RegionRun run(*backend, graph, single(graph, extreme.id()),
                    {Tensor::of<float>(x.shape(), signed_values)}, {.given = {layout}});
      run.launch();
      CHECK(run.candidate().implementation == "fast");
      const float found = run.output().read().as<float>()[0];
      CHECK(found == 0);
      CHECK(std::signbit(found));
    }
}

TEST_CASE("extremes keep NaN, infinities and the sign of the first zero") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> rows{
      {-0.0, 0}, {0, -0.0}, {-1, NAN}, {infinity, -infinity}, {-infinity, -infinity}, {5e-324, -5e-324}};
  for (const std::int64_t repeats : {1, 40}) {
    std::vector<double> values;
    for (const auto& row : rows)
      for (const double value : row) values.insert(values.end(), static_cast<std::size_t>(repeats), value);
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t width = 2 * repeats;
    std::vector<double> turned_values;
    for (std::int64_t i = 0; i < width; ++i)
      for (std::int64_t row = 0; row < count; ++row)
        turned_values.push_back(values[static_cast<std::size_t>(row * width + i)]);
    for (const bool turned : {false, true})
      for (const bool largest : {false, true})
        check_bits(
            [&](Graph& graph, DType dtype) {
              const Tensor x = turned ? Tensor::of<double>({width, count}, turned_values)
                                      : Tensor::of<double>({count, width}, values);
              const Node node = graph.constant(x.cast(dtype));
              const std::int64_t axis = turned ? 0 : 1;
              return largest ? max(node, {{axis}}) : min(node, {{axis}});
            },
            {DType::float64, DType::float32, DType::bfloat16, DType::float16});
  }
}

TEST_CASE("argmax of columns finds the first largest element, or the first NaN") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special{-0.0, 0, 1, 1, NAN, infinity, -infinity, NAN, 5e-324, -1};
  for (const Shape& shape : {Shape{7, 8}, Shape{1, 20}, Shape{40, 3, 300}, Shape{3, 5, 2, 9}}) {
    CAPTURE(to_string(shape));
    for (const std::int64_t axis : {std::int64_t{0}, shape.rank() - 2})
      for (const bool is_special : {false, true})
        check_bits(
            [&](Graph& graph, DType dtype) {
              if (!is_special) return argmax(graph.input("x", {dtype, shape}), axis);
              std::vector<double> values;
              for (std::int64_t i = 0; i < shape.elements(); ++i)
                values.push_back(special[static_cast<std::size_t>(i * i + i / 8) % special.size()]);
              return argmax(graph.constant(Tensor::of<double>(shape, values).cast(dtype)), axis);
            },
            {DType::float32, DType::float64});
  }
}

TEST_CASE("the padding of blocks is no smallest or largest element") {
  for (const bool largest : {false, true})
    for (const std::vector<std::int64_t>& axes :
         std::vector<std::vector<std::int64_t>>{{1}, {0, 2, 3}, {1, 2, 3}}) {
      const Agreement result = agreement_of_node(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const Node x = graph.input("x", {dtype, {3, 17, 4, 5}});
            return {largest ? max(x, {axes}) : min(x, {axes})};
          },
          {blocked_channels(16)}, {.low = largest ? -2.0 : 1.0, .high = largest ? -1.0 : 2.0});
      CHECK(result.worst() == 0);
    }
}

TEST_CASE("a value per channel is spread over pixels") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {3, 32, 1, 1}});
    return {neg(broadcast_to(x, {3, 32, 5, 5})), broadcast_to(graph.input("row", {dtype, {4}}), {3, 4}),
            broadcast_to(graph.input("one", {dtype, {}}), {2, 3})};
  });
  CHECK(!result.uses("portable"));
  CHECK(result.worst() == 0);
}

}  // namespace plexaura::testing::reduce_test

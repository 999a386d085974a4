#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/elementwise/cast_loops.h"
#include "core/ops/binary.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/tensor/convert.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::cast_test {

namespace {

// A std::vector<bool> has no array.
template <class T>
using InVector = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class To, class From>
std::vector<InVector<To>> cast_all(const std::vector<From>& from) {
  std::vector<InVector<To>> to(from.size());
  const fast::CastLoop loop = fast::find_cast(dtype_of<From>, dtype_of<To>);
  REQUIRE((loop != nullptr));
  loop(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()),
       static_cast<std::int64_t>(from.size()));
  return to;
}

template <class T>
std::vector<T> all_of_16_bits() {
  std::vector<T> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  return all;
}

// Floats with every sign and exponent and, for each of these, fractions near the boundaries of rounding.
std::vector<float> floats() {
  std::vector<float> all;
  std::mt19937 random(1);
  for (std::uint32_t head = 0; head < 512; ++head)
    for (const std::uint32_t fraction :
         {0U, 1U, 0x1000U, 0xfffU, 0x1001U, 0x3000U, 0x8000U, 0x7fffU, 0x18000U, 0x7ff000U, 0x7fefffU,
          0x7fffffU, 0x400000U, static_cast<std::uint32_t>(random()) & 0x7fffffU})
      all.push_back(std::bit_cast<float>((head << 23) | fraction));
  return all;
}

template <class To, class From>
void check_casts(const std::vector<From>& values) {
  CAPTURE(name_of(dtype_of<From>));
  CAPTURE(name_of(dtype_of<To>));
  const std::vector<InVector<To>> found = cast_all<To>(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto own = static_cast<double>(found[i]);
    const auto wanted = static_cast<double>(convert<To>(values[i]));
    CAPTURE(static_cast<double>(values[i]));
    CHECK(((own == wanted && std::signbit(own) == std::signbit(wanted)) ||
           (std::isnan(own) && std::isnan(wanted))));
  }
}

}  // namespace

TEST_CASE("loops that cast compute what convert() computes, for all numbers of 16 bits and rounded ones") {
  check_casts<float>(all_of_16_bits<float16>());
  check_casts<float>(all_of_16_bits<bfloat16>());
  check_casts<float16>(floats());
  check_casts<bfloat16>(floats());
  check_casts<double>(floats());
  check_casts<std::int64_t>(floats());
  std::vector<double> doubles;
  for (const float value : floats()) doubles.push_back(static_cast<double>(value) * (1 + 1e-9));
  check_casts<float>(doubles);
  check_casts<float>(std::vector<std::int64_t>{0, -1, (1LL << 53) + 1, -(1LL << 62), 1234567890123});
  check_casts<float>(std::vector<std::int32_t>{0, -1, 16777217, -2147483647, 77});
  check_casts<float>(std::vector<std::uint8_t>{0, 1, 127, 255});
  const std::vector<std::int64_t> whole{0, -1, 255, 256, 1LL << 31, (1LL << 53) + 1, -(1LL << 62)};
  check_casts<double>(whole);
  check_casts<std::int32_t>(whole);
  check_casts<bool>(whole);
  doubles.insert(doubles.end(), {NAN, HUGE_VAL, -HUGE_VAL, 1e19, -1e19, 2.9, -2.9, -0.0, 5e-324});
  check_casts<std::int64_t>(doubles);
  check_casts<bool>(doubles);
  check_casts<bool>(floats());
  check_casts<double>(std::vector<std::int32_t>{0, -1, 2147483647});
  check_casts<std::int64_t>(std::vector<std::int32_t>{0, -1, 2147483647});
  for (const auto& bytes : {std::vector<std::uint8_t>{0, 1, 128, 255}}) {
    check_casts<double>(bytes);
    check_casts<std::int64_t>(bytes);
    check_casts<bool>(bytes);
  }
  CHECK((fast::find_cast(DType::float64, DType::float16) == nullptr));
}

TEST_CASE("truth values are cast to every dtype") {
  for (const DType to : every_dtype)
    if (to != DType::boolean)
      check_bits(
          [&](Graph& graph, DType dtype) {
            return cast(graph.input("x", {dtype, {3, 70}}), to);
          },
          {DType::boolean});
}

TEST_CASE("elementwise ops on 16 bits have the values of the portable kernels, and run in vectors") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const DType dtype : {DType::bfloat16, DType::float16})
    for (const Shape& shape : {Shape{3}, Shape{2, 511}, Shape{3, 1025}, Shape{4, 3, 70}}) {
      CAPTURE(name_of(dtype));
      CAPTURE(to_string(shape));
      Graph graph;
      const Node x = graph.input("x", {dtype, shape});
      const Node y = graph.input("y", {dtype, shape});
      const Node row = graph.input("row", {dtype, Shape{shape[shape.rank() - 1]}});
      const Node one = graph.input("one", {dtype, Shape{1}});
      const std::vector<Node> results{x + y,
                                      x * row,
                                      x - one,
                                      one - x,
                                      square(x),
                                      relu(x),
                                      x < y,
                                      where(x < y, x, row),
                                      maximum(x, y),
                                      where(x < one, one, y),
                                      cast(x, DType::float32),
                                      cast(cast(x, DType::float32), dtype),
                                      broadcast_to(one, shape)};
      const std::vector<Tensor> values{drawn(x.type(), "x"), drawn(y.type(), "y"), drawn(row.type(), "row"),
                                       drawn(one.type(), "one")};
      CHECK(Runner(graph, results, *fast)(values) == Runner(graph, results, *portable)(values));
      std::vector<ProgramOutput> outputs;
      for (const Node& result : results) outputs.push_back({.node = result});
      CHECK(compile(graph, outputs, *fast)->to_text().find("[portable]") == std::string::npos);
    }
}

}  // namespace plexaura::testing::cast_test

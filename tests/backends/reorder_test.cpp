#include "core/ops/reorder.h"

#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::reorder_test {

namespace {

const Layout channels_last_by_8({0, 2, 3, 1}, {{1, 8}});
const Layout blocked_by_4({0, 1, 2, 3}, {{1, 4}});

struct Case {
  Graph graph;
  Node x;
  Node y;
  Case(TensorType type, const Layout& to)
      : x(graph.input("x", std::move(type))), y(apply(std::make_shared<Reorder>(to), {x})) {}
  Region region() const { return single(graph, y.id()); }
};

bool padding_is_zero(const DeviceValue& value, std::int64_t logical_elements, std::size_t element_bytes) {
  const std::vector<std::byte> bytes = value.read_bytes();
  std::int64_t zeros = 0;
  for (std::size_t i = 0; i < bytes.size(); i += element_bytes) {
    bool zero = true;
    for (std::size_t j = 0; j < element_bytes; ++j) zero = zero && bytes[i + j] == std::byte{0};
    if (zero) ++zeros;
  }
  return zeros == static_cast<std::int64_t>(bytes.size() / element_bytes) - logical_elements;
}

}  // namespace

TEST_CASE("a reorder takes one value, with as many axes as its layout") {
  const Reorder op(blocked_by_4);
  const TensorType image{DType::float32, {1, 4, 2, 2}};
  CHECK(op.infer(std::vector{image}) == std::vector{image});
  CHECK_THROWS_AS(op.infer({}), RuleError);
  CHECK_THROWS_AS(op.infer(std::vector{image, image}), RuleError);
  CHECK_THROWS_WITH_AS(op.infer(std::vector{TensorType{DType::float32, {4}}}),
                       doctest::Contains("the layout has 4 axes"), RuleError);
}

TEST_CASE("a reorder keeps the value and clears the padding") {
  const auto backend = make_portable_backend();
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 17, 1, 3}, Shape{2, 8, 1, 1}, Shape{0, 3, 2, 2}})
    for (const Layout& from : {Layout::row_major(4), blocked_by_4})
      for (const Layout& to : {channels_last_by_8, Layout::row_major(4)}) {
        Case c({DType::float32, shape}, to);
        const Tensor value = counting(c.x.type());
        RegionRun run(*backend, c.graph, c.region(), {value}, {.given = {from}});
        CHECK(run.candidate().inputs[0] == from);
        CHECK(run.candidate().outputs[0] == to);
        run.launch();
        CHECK(run.output().read() == value);
        CHECK(padding_is_zero(run.output(), shape.elements(), 4));
      }
}

TEST_CASE("a reorder of a parameter without a layout takes the target's") {
  const auto backend = make_portable_backend();
  Case c({DType::float32, {2, 3, 4, 5}}, channels_last_by_8);
  RegionRun run(*backend, c.graph, c.region(), {counting(c.x.type())});
  CHECK(run.candidate().inputs[0] == channels_last_by_8);
}

TEST_CASE("a reorder to a layout of another rank breaks its rule") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2}});
  CHECK_THROWS_WITH(apply(std::make_shared<Reorder>(channels_last_by_8), {x}), doctest::Contains("4 axes"));
}

TEST_CASE("scalars are reordered too") {
  const auto backend = make_cpu_backend();
  Case c({DType::float64, {}}, Layout());
  RegionRun run(*backend, c.graph, c.region(), {counting(c.x.type(), 3)});
  run.launch();
  CHECK(run.output().read() == counting(c.x.type(), 3));
}

}  // namespace plexaura::testing::reorder_test

#include "core/ops/constants.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::constants_test {

namespace {

Tensor value_of(const std::function<Node(Graph&)>& build) {
  Graph graph;
  const Node node = build(graph);
  return Runner(graph, {node}, test_backend())({})[0];
}

}  // namespace

TEST_CASE("iota counts from 0") {
  CHECK(value_of([](Graph& graph) { return iota(graph, 4); }) == Tensor::of<std::int64_t>({4}, {0, 1, 2, 3}));
  CHECK(value_of([](Graph& graph) { return iota(graph, 3, DType::float32); }) ==
        Tensor::of<float>({3}, {0, 1, 2}));
  CHECK(value_of([](Graph& graph) { return iota(graph, 0); }).elements() == 0);
}

TEST_CASE("eye has 1 on the main diagonal") {
  CHECK(value_of([](Graph& graph) { return eye(graph, 2, 3); }) ==
        Tensor::of<float>({2, 3}, {1, 0, 0, 0, 1, 0}));
  CHECK(value_of([](Graph& graph) { return eye(graph, 3, 1, DType::int64); }) ==
        Tensor::of<std::int64_t>({3, 1}, {1, 0, 0}));
  CHECK(value_of([](Graph& graph) { return eye(graph, 0, 2); }).shape() == Shape{0, 2});
}

TEST_CASE("constants that cannot be are refused with the caller's line") {
  Graph graph;
  for (const std::string& text :
       {user_error([&] { iota(graph, -1); }), user_error([&] { eye(graph, 2, -1); })}) {
    CHECK_MESSAGE(text.find("an extent must be 0 or more, not -1") != std::string::npos, text);
    CHECK_MESSAGE(text.find("constants_test.cpp") != std::string::npos, text);
  }
  CHECK(user_error([&] { eye(graph, 2, -1); }).find("eye: an extent") != std::string::npos);
  const std::string narrow = user_error([&] { iota(graph, 300, DType::uint8); });
  CHECK_MESSAGE(narrow.find("iota: uint8 cannot hold all whole numbers below 300") != std::string::npos,
                narrow);
  CHECK(user_error([&] { iota(graph, 256, DType::uint8); }).empty());
}

}  // namespace plexaura::testing::constants_test

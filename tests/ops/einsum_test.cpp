#include "core/ops/einsum.h"

#include <doctest/doctest.h>
#include <map>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/axes.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::einsum_test {

namespace {

using reference::at;
using reference::Index;

// The sum, for every place of all letters, of the product of the operands. Letters stand for axes; "..." is written
// out as letters.
Tensor expected_sum(const std::vector<std::string>& terms, const std::string& result,
                    std::span<const Tensor> x) {
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t axis = 0; axis < terms[i].size(); ++axis) {
      std::int64_t& extent = extents.try_emplace(terms[i][axis], 1).first->second;
      const std::int64_t own = x[i].shape()[static_cast<std::int64_t>(axis)];
      if (own != 1) extent = own;
    }
  std::string letters;
  std::vector<std::int64_t> all;
  for (const auto& [letter, extent] : extents) {
    letters += letter;
    all.push_back(extent);
  }
  std::vector<std::int64_t> to;
  for (const char letter : result) to.push_back(extents.at(letter));
  Tensor y = reference::zeros(Shape(to));
  const auto part = [&](const Index& index, const std::string& term) {
    Index place;
    for (const char letter : term) place.push_back(index[letters.find(letter)]);
    return place;
  };
  reference::for_each_index(Shape(all), [&](const Index& index) {
    double product = 1;
    for (std::size_t i = 0; i < terms.size(); ++i)
      product *= at(x[i], reference::before_broadcasting(x[i].shape(), part(index, terms[i])));
    at(y, part(index, result)) += product;
  });
  return y;
}

// `op` is one that the equation must lead to. The terms and the result spell the equation out.
OpCase einsum_case(const std::string& equation, const std::string& op, const std::vector<Shape>& shapes,
                   const std::vector<std::string>& terms, const std::string& result) {
  std::vector<CaseInput> inputs;
  for (const Shape& shape : shapes) inputs.push_back({shape, between(0.5, 1.5)});
  return {
      "einsum " + equation + " of " + to_string(shapes[0]), op,
      [=](Graph&, auto x) { return std::vector{einsum(equation, std::vector<Operand>(x.begin(), x.end()))}; },
      inputs, [=](auto x) { return std::vector{expected_sum(terms, result, x)}; }};
}

template <class Build>
OpCase tensordot_case(const std::string& name, const Shape& a, const Shape& b, const Build& build,
                      const std::string& of_a, const std::string& of_b, const std::string& result) {
  return {"tensordot, " + name,
          result.size() == of_a.size() + of_b.size() ? "mul" : "matmul",
          [=](Graph&, auto x) { return std::vector{build(x[0], x[1])}; },
          {{a, between(0.5, 1.5)}, {b, between(0.5, 1.5)}},
          [=](auto x) {
            return std::vector{expected_sum({of_a, of_b}, result, x)};
          }};
}

const Cases cases({
    einsum_case("ij,jk->ik", "matmul", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik"),
    einsum_case("ij, jk", "matmul", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik"),
    einsum_case("ba,cb", "matmul", {{2, 3}, {4, 2}}, {"ba", "cb"}, "ac"),
    einsum_case("bik,bkj->bji", "matmul", {{2, 3, 4}, {2, 4, 2}}, {"bik", "bkj"}, "bji"),
    einsum_case("i,i->", "matmul", {{4}, {4}}, {"i", "i"}, ""),
    einsum_case("i,j->ji", "mul", {{3}, {4}}, {"i", "j"}, "ji"),
    einsum_case("ij->ji", "permute", {{2, 3}}, {"ij"}, "ji"),
    einsum_case("ij->", "sum", {{2, 3}}, {"ij"}, ""),
    einsum_case("ii->i", "slice", {{3, 3}}, {"ii"}, "i"),
    einsum_case("ii", "sum", {{3, 3}}, {"ii"}, ""),
    einsum_case("iij,jj->i", "matmul", {{2, 2, 3}, {3, 3}}, {"iij", "jj"}, "i"),
    einsum_case("ijk,k,j->i", "matmul", {{2, 3, 4}, {4}, {3}}, {"ijk", "k", "j"}, "i"),
    einsum_case("ij,ij,ij->j", "mul", {{3, 2}, {3, 2}, {3, 2}}, {"ij", "ij", "ij"}, "j"),
    einsum_case("ij,kl->", "sum", {{2, 3}, {2, 2}}, {"ij", "kl"}, ""),
    einsum_case("...ij,...jk->...ik", "matmul", {{2, 2, 3}, {2, 3, 2}}, {"bij", "bjk"}, "bik"),
    einsum_case("...ij,...jk", "matmul", {{4, 1, 2, 3}, {2, 3, 2}}, {"cbij", "bjk"}, "cbik"),
    einsum_case("...i->i...", "permute", {{2, 3, 4}}, {"abi"}, "iab"),
    einsum_case("ij,jk->ik", "mul", {{2, 1}, {3, 4}}, {"ij", "jk"}, "ik"),
    einsum_case("ij,jk->ik", "matmul", {{2, 0}, {0, 4}}, {"ij", "jk"}, "ik"),
    einsum_case(",i->i", "mul", {{}, {3}}, {"", "i"}, "i"),
    tensordot_case(
        "two axes", {2, 3, 4}, {3, 4, 2}, [](const Node& a, const Node& b) { return tensordot(a, b, 2); },
        "ajk", "jkb", "ab"),
    tensordot_case(
        "named axes", {2, 3, 4}, {4, 2, 5},
        [](const Node& a, const Node& b) {
          return tensordot(a, b, {0, -1}, {1, 0});
        },
        "iaj", "jib", "ab"),
    tensordot_case(
        "no axes", {2, 3}, {2}, [](const Node& a, const Node& b) { return tensordot(a, b, 0); }, "ab", "c",
        "abc"),
});

// The error has the types of all operands.
WrongCase of_equation(const std::string& name, const std::string& equation, std::vector<std::string> words) {
  words.push_back("einsum(float32[2,3], float32[2,3]): ");
  return {"einsum, " + name, "einsum",
          [=](Graph& graph) {
            const Node x = graph.input("x", {DType::float32, {2, 3}});
            einsum(equation, {x, x});
          },
          std::move(words)};
}

template <class Build>
WrongCase of_tensordot(const std::string& name, const Build& build, std::vector<std::string> words) {
  return {"tensordot, " + name, "tensordot",
          [=](Graph& graph) {
            build(graph.input("a", {DType::float32, {2, 3}}), graph.input("b", {DType::float32, {3, 4}}));
          },
          std::move(words)};
}

const WrongCases wrong({
    of_equation("one term", "ij->i", {"the equation has 1 terms for 2 operands"}),
    of_equation("three terms", "ij,ij,ij->i", {"the equation has 3 terms for 2 operands"}),
    of_equation("too few letters", "ij,i", {"the term 'i' has 1 letters for the 2 axes of operand 1"}),
    of_equation("too many letters", "ij,...ijk", {"has 3 letters for the 2 axes of operand 1"}),
    of_equation("no letter", "i1,ij", {"'1' is no letter"}),
    of_equation("two dots", "i.,ij", {"'.' is no letter"}),
    of_equation("extents that differ", "ij,ji->i", {"the extents 3 and 2 of axis 'j' differ"}),
    of_equation("a diagonal of no square", "ii,ij",
                {"the two axes 'i' of an operand have the extents 2 and 3"}),
    of_equation("an axis that no operand has", "ij,ij->k", {"no operand has the axis 'k' of the result"}),
    of_equation("an axis twice", "ij,ij->ii", {"the result has the axis 'i' twice"}),
    {"einsum, two dtypes",
     "einsum",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::float32, {2}});
       einsum("i,i,i", {x, cast(x, DType::float64), x});
     },
     {"einsum(float32[2], float64[2], float32[2]): ", "one dtype", "cast()"}},
    {"einsum, bools",
     "einsum",
     [](Graph& graph) {
       einsum("i->", {graph.input("x", {DType::boolean, {2}})});
     },
     {"not for bool", "cast()"}},
    of_tensordot("too many axes", [](const Node& a, const Node& b) { tensordot(a, b, 3); },
                 {"tensordot(float32[2,3], float32[3,4]): both operands must have the 3 axes"}),
    of_tensordot("other extents", [](const Node& a, const Node& b) { tensordot(a, b, {0}, {0}); },
                 {"axis 0 of a and axis 0 of b have the extents 2 and 3"}),
    of_tensordot("unpaired axes",
                 [](const Node& a, const Node& b) {
                   tensordot(a, b, {1}, {0, 1});
                 },
                 {"1 axes of a cannot be paired with 2 of b"}),
    of_tensordot("no axis", [](const Node& a, const Node& b) { tensordot(a, b, {2}, {0}); },
                 {"axis 2 does not exist"}),
    of_tensordot("an axis twice",
                 [](const Node& a, const Node& b) {
                   tensordot(a, b, {1, 1}, {0, 1});
                 },
                 {"an axis is named twice"}),
});

}  // namespace

TEST_CASE("einsum: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("einsum: what it refuses") { check_all(wrong); }

TEST_CASE("einsum and tensordot of integers are exact") {
  Graph graph;
  const Node x = graph.input("x", {DType::int64, {2, 2}});
  const auto results = Runner(graph, {einsum("ij,jk->ik", {x, x}), tensordot(x, x, 2)},
                              test_backend())({Tensor::of<std::int64_t>({2, 2}, {(1LL << 53) + 1, 0, 2, 1})});
  constexpr std::int64_t large = (1LL << 53) + 1;
  CHECK(results[0] ==
        Tensor::of<std::int64_t>({2, 2}, {static_cast<std::int64_t>(1ULL << 54) + 1, 0, 2 * large + 2, 1}));
  CHECK(results[1] == Tensor::scalar(static_cast<std::int64_t>(1ULL << 54) + 6));
}

TEST_CASE("einsum takes nodes in a vector") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {4, 3}});
  CHECK(einsum("ij,kj->ik", split(x, 2)).shape() == Shape{2, 2});
}

TEST_CASE("einsum refuses an empty list") {
  CHECK(user_error([] { einsum("", {}); }) == "einsum of nothing: it needs at least one operand");
}

}  // namespace plexaura::testing::einsum_test

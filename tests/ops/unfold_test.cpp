#include "core/ops/unfold.h"

#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/graph/graph.h"
#include "core/ops/arrange.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::unfold_test {

namespace {

using reference::at;
using reference::Index;

// The index in x of an element of the windows.
Index place_in_axis(const Index& index, std::size_t axis, const UnfoldOptions& of) {
  Index place(index.begin(), index.end() - 1);
  place[axis] = index[axis] * of.step + index.back() * of.dilation;
  return place;
}

OpCase unfold_case(const Shape& x, const UnfoldOptions& options, std::size_t axis, const Shape& windows) {
  return {"unfold of " + to_string(x) + ", " + to_string(description_of(options)),
          "unfold",
          [=](Graph&, auto of) { return std::vector{unfold(of[0], options)}; },
          {{x}},
          [=](auto of) {
            Tensor y = reference::zeros(windows);
            reference::for_each_index(windows, [&](const Index& index) {
              at(y, index) = at(of[0], place_in_axis(index, axis, options));
            });
            return std::vector{y};
          }};
}

OpCase fold_case(const Shape& windows, const UnfoldOptions& options, std::size_t axis, const Shape& x) {
  return {"fold of " + to_string(windows) + ", " + to_string(description_of(options)),
          "fold",
          [=](Graph&, auto of) { return std::vector{fold(of[0], x.extents()[axis], options)}; },
          {{windows}},
          [=](auto of) {
            Tensor y = reference::zeros(x);
            reference::for_each_index(windows, [&](const Index& index) {
              at(y, place_in_axis(index, axis, options)) += at(of[0], index);
            });
            return std::vector{y};
          }};
}

constexpr Window2d window{.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}};

// Calls body(index of an element in the image, index in the columns) for a window over an image [N, C, H, W].
template <class Body>
void for_each_tap(const Shape& image, Size2d places, const Body& body) {
  const Shape all{image[0], image[1], window.kernel.h, window.kernel.w, places.h, places.w};
  reference::for_each_index(all, [&](const Index& i) {
    const std::int64_t row = i[4] * window.stride.h + i[2] * window.dilation.h - window.padding.h;
    const std::int64_t column = i[5] * window.stride.w + i[3] * window.dilation.w - window.padding.w;
    if (row < 0 || row >= image[2] || column < 0 || column >= image[3]) return;
    body(Index{i[0], i[1], row, column},
         Index{i[0], (i[1] * window.kernel.h + i[2]) * window.kernel.w + i[3], i[4] * places.w + i[5]});
  });
}

const Cases cases({
    unfold_case({7}, {.size = 3}, 0, {5, 3}),
    unfold_case({2, 9, 3}, {.axis = 1, .size = 4, .step = 2}, 1, {2, 3, 3, 4}),
    unfold_case({2, 9}, {.axis = -1, .size = 3, .step = 2, .dilation = 3}, 1, {2, 2, 3}),
    unfold_case({5, 2}, {.size = 5, .step = 100}, 0, {1, 2, 5}),
    unfold_case({3, 2},
                {.axis = 1,
                 .size = 1,
                 .step = std::numeric_limits<std::int64_t>::max(),
                 .dilation = std::numeric_limits<std::int64_t>::max()},
                1, {3, 1, 1}),
    unfold_case({0, 4}, {.axis = 1, .size = 2}, 1, {0, 3, 2}),
    fold_case({5, 3}, {.size = 3}, 0, {7}),
    fold_case({2, 3, 3, 4}, {.axis = 1, .size = 4, .step = 2}, 1, {2, 9, 3}),
    fold_case({2, 2, 3}, {.axis = -1, .size = 3, .step = 2, .dilation = 3}, 1, {2, 9}),
    fold_case({0, 3, 2}, {.axis = 1, .size = 2}, 1, {0, 4}),
    {"im2col",
     "unfold",
     [](Graph&, auto x) { return std::vector{im2col(x[0], window)}; },
     {{{2, 2, 4, 6}}},
     [](auto x) {
       Tensor y = reference::zeros({2, 12, 8});
       for_each_tap(x[0].shape(), {4, 2},
                    [&](const Index& from, const Index& to) { at(y, to) = at(x[0], from); });
       return std::vector{y};
     }},
    {"col2im",
     "fold",
     [](Graph&, auto x) {
       return std::vector{col2im(x[0], {4, 6}, window)};
     },
     {{{2, 12, 8}}},
     [](auto x) {
       Tensor y = reference::zeros({2, 2, 4, 6});
       for_each_tap(y.shape(), {4, 2},
                    [&](const Index& to, const Index& from) { at(y, to) += at(x[0], from); });
       return std::vector{y};
     }},
});

WrongCase of_shape(const std::string& name, const Shape& shape, std::function<void(const Node&)> build,
                   std::vector<std::string> words) {
  return {name, name.substr(0, name.find(' ')),
          [=](Graph& graph) {
            build(graph.input("x", {DType::float32, shape}));
          },
          std::move(words)};
}

const WrongCases wrong({
    of_shape("unfold along no axis", {4}, [](const Node& x) { unfold(x, {.axis = 1}); },
             {"axis 1 does not exist"}),
    of_shape("unfold by too large a window", {4},
             [](const Node& x) { unfold(x, {.size = 3, .dilation = 2}); },
             {"a window of 3 elements with dilation 2 does not fit into an axis of 4"}),
    of_shape("unfold by a step of 0", {4}, [](const Node& x) { unfold(x, {.step = 0}); },
             {"size, step and dilation must be 1 or more, not 1, 0 and 1"}),
    of_shape("unfold an empty axis", {0}, [](const Node& x) { unfold(x, {}); },
             {"does not fit into an axis of 0"}),
    of_shape("fold another number of windows", {4, 2}, [](const Node& x) { fold(x, 4, {.size = 2}); },
             {"an axis of 4 has 3 windows of 2 elements: axis 0 must have extent 3, and the last axis 2"}),
    of_shape("fold along no axis", {3, 2}, [](const Node& x) { fold(x, 4, {.axis = 1, .size = 2}); },
             {"axis 1 does not exist"}),
    of_shape("fold of a scalar", {}, [](const Node& x) { fold(x, 4, {}); }, {"axis 0 does not exist"}),
    of_shape("im2col of a matrix", {4, 4}, [](const Node& x) { im2col(x, window); },
             {"im2col(float32[4,4]): needs the axes N, C, H and W"}),
    of_shape("im2col by too large a window", {1, 1, 4, 2}, [](const Node& x) { im2col(x, window); },
             {"im2col(float32[1,1,4,2])", "the window reaches over 3 elements and the padded input has 2"}),
    of_shape("col2im of another shape", {2, 11, 8},
             [](const Node& x) {
               col2im(x, {4, 6}, window);
             },
             {"needs the shape [N, C 6, 8] for this window and size"}),
});

}  // namespace

TEST_CASE("unfold: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("unfold: what it refuses") { check_all(wrong); }

TEST_CASE("im2col and col2im pad the end of an axis differently from its start") {
  const Window2d both{.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 0}, .padding_end = Size2d{2, 1}};
  const Window2d none{.kernel = both.kernel, .stride = both.stride};
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 1, 3, 4}});
  const Node columns = im2col(x, both);
  const Node expected = im2col(pad(x, {{2, 1, 2}, {3, 0, 1}}), none);
  CHECK(columns.shape() == Shape{2, 6, 9});
  const Node image = col2im(columns * columns, {3, 4}, both);
  const Node gradient = gradients(sum(cube(columns)), {x})[0];
  Random random(3);
  const std::vector<Tensor> found =
      Runner(graph, {columns, expected, image * 3, gradient}, oracle())({random.tensor(x.type(), -1, 1)});
  CHECK(found[0] == found[1]);
  for (std::size_t i = 0; i < found[2].as<double>().size(); ++i)
    CHECK(found[2].as<double>()[i] == doctest::Approx(found[3].as<double>()[i]).epsilon(1e-12));
}

TEST_CASE("the gradient of overlapping windows is added up in float32") {
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {600}});
  const Node grad = gradients(sum(unfold(x, {.size = 300})), {x})[0];
  const auto result = Runner(graph, {grad}, test_backend())({Tensor(x.type())});
  CHECK(result[0].to_doubles()[299] == 300);
}

TEST_CASE("fold of integers wraps around") {
  Graph graph;
  const Node x = graph.input("x", {DType::uint8, {2, 2}});
  const auto result = Runner(graph, {fold(x, 3, {.size = 2})},
                             test_backend())({Tensor::of<std::uint8_t>({2, 2}, {1, 200, 100, 3})});
  CHECK(result[0] == Tensor::of<std::uint8_t>({3}, {1, 44, 3}));
}

}  // namespace plexaura::testing::unfold_test

#include <doctest/doctest.h>

#include "onnx/stored_data.h"

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_resize_test {

namespace {

using Extents = WrittenGraph::Extents;

const Tensor& row() {
  static const Tensor x = floats({1, 1, 4}, {0, 1, 2, 3});
  return x;
}

}  // namespace

TEST_CASE("attributes of Resize with the standard's default values are accepted, and others refused") {
  const Tensor scales = floats({3}, {1, 1, 2});
  const Tensor doubled = floats({1, 1, 8}, {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  const OneNode::Attributes defaults{{"mode", std::string("linear")},
                                     {"antialias", 0},
                                     {"keep_aspect_ratio_policy", std::string("stretch")}};
  CHECK(OneNode("Resize", 19, defaults)({row(), scales}, {1})[0] == doubled);
  CHECK(OneNode("Resize", 19, {{"keep_aspect_ratio_policy", std::string("odd")}})
            .error({row(), integers({3}, {1, 1, 2})}, {1, 2})
            .find("the keep_aspect_ratio_policy 'odd' is not supported") != std::string::npos);
}

TEST_CASE("an axis that shrinks with antialias takes the mean over a wider neighbourhood") {
  const OneNode linear("Resize", 19, {{"mode", std::string("linear")}, {"antialias", 1}});
  // The places 0.5 and 2.5 have the weights 1, 3, 3, 1 at the distances 1.5, 0.5, 0.5, 1.5, as far as they are inside;
  // the ends are repeated.
  CHECK(onnx::largest_distance(linear({row(), floats({3}, {1, 1, 0.5F})}, {1})[0],
                               floats({1, 1, 2}, {5.0F / 8, 19.0F / 8})) <= 1e-6);
  const Tensor doubled = floats({1, 1, 8}, {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  CHECK(linear({row(), floats({3}, {1, 1, 2})}, {1})[0] == doubled);
  CHECK(linear.error({floats({1, 1, 300}, std::vector<float>(300)), floats({3}, {1, 1, 0.005F})}, {1})
            .find("with antialias an axis shrinks to no less than 0.0078125") != std::string::npos);
}

TEST_CASE("sizes that keep the ratio of the extents have one scale") {
  const Tensor x = floats({1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto shape_for = [&](const std::string& policy) {
    return OneNode("Resize", 19, {{"keep_aspect_ratio_policy", policy}, {"axes", Extents{1, 2}}})(
               {x, integers({2}, {3, 12})}, {1, 2})[0]
        .shape();
  };
  CHECK(shape_for("not_larger") == Shape{1, 3, 6});
  CHECK(shape_for("not_smaller") == Shape{1, 6, 12});
}

TEST_CASE("the axes of Resize may be named") {
  const OneNode by_scale("Resize", 19, {{"mode", std::string("linear")}, {"axes", Extents{-1}}});
  CHECK(by_scale({row(), floats({1}, {2})}, {1})[0] ==
        floats({1, 1, 8}, {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3}));
  const OneNode by_size("Resize", 19, {{"axes", Extents{2}}});
  CHECK(by_size({row(), integers({1}, {2})}, {1, 2})[0] == floats({1, 1, 2}, {0, 2}));
  CHECK(by_size.error({row(), integers({2}, {2, 2})}, {1, 2}).find("2 numbers do not fit 1 axes") !=
        std::string::npos);
}

TEST_CASE("sizes that cannot be computed when the graph is built are an error") {
  const OneNode resize("Resize", 19);
  const std::int64_t size = std::int64_t{1} << 60;
  CHECK(resize.error({row(), integers({3}, {1, 1, size})}, {1, 2}).find("is impossible") !=
        std::string::npos);
  CHECK(resize.error({row(), floats({3}, {1, 1, 1e9F})}, {1}).find("is impossible") != std::string::npos);
  CHECK(resize.error({row(), floats({3}, {1, 1, 2}), integers({3}, {1, 1, 8})}, {1})
            .find("both scales and sizes") != std::string::npos);
}

}  // namespace plexaura::onnx_resize_test

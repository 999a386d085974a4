#include <doctest/doctest.h>

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
  CHECK(OneNode("Resize", 19, {{"antialias", 1}}).error({row(), scales}, {1}) ==
        "one.onnx: node 0 (Resize): its attribute 'antialias' is 1, but only 0 is supported");
  CHECK(OneNode("Resize", 19, {{"keep_aspect_ratio_policy", std::string("not_larger")}})
            .error({row(), scales}, {1})
            .find("only 'stretch' is supported") != std::string::npos);
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

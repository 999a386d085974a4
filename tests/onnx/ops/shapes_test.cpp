#include <doctest/doctest.h>
#include <limits>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_shapes_test {

namespace {

const Tensor& seven() {
  static const Tensor x = floats({7}, {0, 1, 2, 3, 4, 5, 6});
  return x;
}

}  // namespace

TEST_CASE("a split has the sizes that the file names") {
  const OneNode split("Split", 13, {}, 2);
  const std::vector<Tensor> parts = split({seven(), integers({2}, {5, 2})});
  CHECK(parts[0] == floats({5}, {0, 1, 2, 3, 4}));
  CHECK(parts[1] == floats({2}, {5, 6}));
  CHECK(split.error({seven(), integers({2}, {5, 1})}).find("must add up to 7") != std::string::npos);
  CHECK(split.error({seven(), integers({3}, {2, 2, 3})}) ==
        "one.onnx: node 0 (Split): it divides into 3 parts, but has 2 outputs");
  CHECK(OneNode("Split", 11, {{"split", WrittenGraph::Extents{3, 4}}}, 2)({seven()})[1].shape() == Shape{4});
}

TEST_CASE("a split into equal parts has a smaller last part from version 18 on only") {
  const std::vector<Tensor> parts = OneNode("Split", 18, {{"num_outputs", 3}}, 3)({seven()});
  CHECK(parts[1] == floats({3}, {3, 4, 5}));
  CHECK(parts[2] == floats({1}, {6}));
  CHECK(OneNode("Split", 13, {}, 3).error({seven()}) ==
        "one.onnx: node 0 (Split): an axis of 7 elements cannot be divided into 3 equal parts; name their "
        "sizes");
  CHECK(OneNode("Split", 18, {{"num_outputs", 4}}, 4)
            .error({floats({5}, {1, 2, 3, 4, 5})})
            .find("cannot be divided") != std::string::npos);
  CHECK(OneNode("Split", 18, {{"num_outputs", 4}}, 3).error({seven()}).find("4 parts, but has 3 outputs") !=
        std::string::npos);
  CHECK(OneNode("Split", 13, {}, 2)({floats({4}, {1, 2, 3, 4})})[1] == floats({2}, {3, 4}));
}

TEST_CASE("axes that repeat or are too many are an error") {
  const OneNode unsqueeze("Unsqueeze", 13);
  CHECK(unsqueeze.error({seven(), integers({2}, {0, -3})}).find("its axes 0, 0 must differ") !=
        std::string::npos);
  const std::vector<std::int64_t> zeros(65);
  CHECK(unsqueeze.error({seven(), integers({65}, zeros)}).find("at most 64") != std::string::npos);
  CHECK(OneNode("Reshape", 13).error({floats({1}, {1}), integers({65}, std::vector<std::int64_t>(65, 1))}) ==
        "one.onnx: node 0 (Reshape): its output 0 ('y0') has 65 axes; at most 64 are supported");
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(OneNode("Pad", 13).error({seven(), integers({2}, {lowest, 0})}).find("pads must be from") !=
        std::string::npos);
}

TEST_CASE("a range without a step or of too many numbers is an error") {
  const auto scalar = [](float value) { return floats({}, {value}); };
  const OneNode range("Range", 11);
  CHECK(range({scalar(1), scalar(4), scalar(2)})[0] == floats({2}, {1, 3}));
  CHECK(range.error({scalar(0), scalar(0), scalar(0)}).find("the step of a range is 0") != std::string::npos);
  CHECK(range.error({scalar(0), scalar(1e9F), scalar(1)}).find("at most 16777216") != std::string::npos);
}

TEST_CASE("a mode of DepthToSpace that the standard does not have is an error") {
  const OneNode odd("DepthToSpace", 13, {{"blocksize", 2}, {"mode", std::string("CDR")}});
  CHECK(odd.error({floats({1, 4, 1, 1}, {1, 2, 3, 4})}) ==
        "one.onnx: node 0 (DepthToSpace): mode must be DCR or CRD, not 'CDR'");
}

TEST_CASE("CenterCropPad cuts and pads axes at both ends, and the end by one more") {
  const OneNode node("CenterCropPad", 18);
  CHECK(node({seven(), integers({1}, {4})})[0] == floats({4}, {1, 2, 3, 4}));
  CHECK(node({floats({2}, {1, 2}), integers({1}, {5})})[0] == floats({5}, {0, 1, 2, 0, 0}));
  const OneNode named("CenterCropPad", 18, {{"axes", WrittenGraph::Extents{-1}}});
  CHECK(named({floats({2, 2}, {1, 2, 3, 4}), integers({1}, {1})})[0] == floats({2, 1}, {1, 3}));
  CHECK(node.error({seven(), integers({2}, {4, 4})}).find("2 extents do not fit 1 axes") !=
        std::string::npos);
  CHECK(node.error({seven(), integers({1}, {-4})}).find("must not be negative") != std::string::npos);
}

}  // namespace plexaura::onnx_shapes_test

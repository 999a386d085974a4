#include <doctest/doctest.h>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_pools_test {

namespace {

using Extents = WrittenGraph::Extents;

OneNode pool(const std::string& op, std::int64_t kernel, std::int64_t stride, const Extents& pads,
             OneNode::Attributes more = {}, std::size_t outputs = 1) {
  more.emplace_back("kernel_shape", Extents{kernel});
  more.emplace_back("strides", Extents{stride});
  more.emplace_back("pads", pads);
  more.emplace_back("ceil_mode", 1);
  return {op, 19, more, outputs};
}

}  // namespace

// The expected values are PyTorch's.
TEST_CASE("a window that would begin after the input is left out with ceil_mode") {
  const Tensor x = floats({1, 1, 4}, {1, 2, 3, 4});
  CHECK(pool("MaxPool", 2, 3, {1, 1})({x})[0] == floats({1, 1, 2}, {1, 4}));
  CHECK(pool("AveragePool", 2, 3, {1, 1})({x})[0] == floats({1, 1, 2}, {1, 3.5}));
  CHECK(pool("AveragePool", 2, 3, {1, 1}, {{"count_include_pad", 1}})({x})[0] ==
        floats({1, 1, 2}, {0.5, 3.5}));
  CHECK(pool("LpPool", 2, 3, {1, 1})({x})[0] == floats({1, 1, 2}, {1, 5}));
  const std::vector<Tensor> both = pool("MaxPool", 2, 3, {1, 1}, {}, 2)({x});
  CHECK(both[1] == integers({1, 1, 2}, {0, 3}));
  CHECK(pool("MaxPool", 2, 2, {0, 4})({x})[0].shape() == Shape{1, 1, 3});
}

TEST_CASE("the last window may extend beyond the padding with ceil_mode, which the mean does not count") {
  const Tensor x = floats({1, 1, 4}, {1, 2, 3, 4});
  CHECK(pool("MaxPool", 3, 2, {1, 1})({x})[0] == floats({1, 1, 3}, {2, 4, 4}));
  CHECK(pool("AveragePool", 3, 2, {0, 0})({x})[0] == floats({1, 1, 2}, {2, 3.5}));
  CHECK(pool("AveragePool", 3, 2, {1, 1}, {{"count_include_pad", 1}})({x})[0] ==
        floats({1, 1, 3}, {1, 3, 2}));
  CHECK(pool("MaxPool", 3, 2, {0, 0})({floats({1, 1, 2}, {1, 2})})[0] == floats({1, 1, 1}, {2}));
}

TEST_CASE("numbers of a window that cannot be multiplied are an error") {
  const OneNode far = pool("MaxPool", std::int64_t{1} << 62, 2, {0, 0});
  CHECK(far.error({floats({1, 1, 2}, {1, 2})}) ==
        "one.onnx: node 0 (MaxPool): an extent of the kernel must be from 1 to 1073741824, not "
        "4611686018427387904");
  CHECK(pool("MaxPool", 2, 2, {-1, 0}).error({floats({1, 1, 2}, {1, 2})}).find("a number of pads") !=
        std::string::npos);
}

}  // namespace plexaura::onnx_pools_test

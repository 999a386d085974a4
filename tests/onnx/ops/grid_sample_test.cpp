#include <doctest/doctest.h>
#include <limits>

#include "onnx/stored_data.h"

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_grid_sample_test {

namespace {

Tensor places() { return floats({1, 1, 3, 2}, {-1.2F, -0.9F, 0.1F, 0.3F, 0.75F, 1.4F}); }

// Samples 0, 1, ... 11 in three rows at these places. Returns the largest distance to the expected numbers.
double distance(const std::string& mode, const std::string& padding, bool aligns,
                const std::vector<float>& expected, std::int64_t version = 16) {
  const OneNode node("GridSample", version,
                     {{"mode", mode}, {"padding_mode", padding}, {"align_corners", std::int64_t{aligns}}});
  const Tensor x = floats({1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  return onnx::largest_distance(node({x, places()})[0], floats({1, 1, 1, 3}, expected));
}

}  // namespace

// The numbers are those of PyTorch's grid_sample.
TEST_CASE("GridSample has PyTorch's numbers for each mode and padding") {
  CHECK(distance("bilinear", "zeros", false, {0, 7.5F, 0}) <= 1e-5);
  CHECK(distance("bilinear", "zeros", true, {0.28F, 6.85F, 6.375F}) <= 1e-5);
  CHECK(distance("bilinear", "border", false, {0, 7.5F, 11}) <= 1e-5);
  CHECK(distance("bilinear", "reflection", false, {0, 7.5F, 10.6F}) <= 1e-5);
  CHECK(distance("bilinear", "reflection", true, {0.7F, 6.85F, 9.025F}) <= 1e-5);
  CHECK(distance("nearest", "zeros", false, {0, 6, 0}) <= 1e-5);
  CHECK(distance("nearest", "border", false, {0, 6, 11}) <= 1e-5);
  CHECK(distance("bicubic", "zeros", false, {-0.0408798F, 8.6483707F, -0.6682501F}) <= 1e-5);
  CHECK(distance("bicubic", "reflection", true, {0.1795002F, 7.3618774F, 9.9834280F}) <= 1e-5);
  CHECK(distance("cubic", "zeros", true, {0.1000746F, 7.6272278F, 7.7708640F}, 20) <= 1e-5);
}

TEST_CASE("GridSample of version 20 samples a volume, whose last axis comes first in the grid") {
  const OneNode node("GridSample", 20);
  const Tensor x = floats({1, 1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor grid = floats({1, 1, 1, 2, 3}, {-0.5F, 0.25F, 0.8F, 0, 0, 0});
  CHECK(onnx::largest_distance(node({x, grid})[0], floats({1, 1, 1, 1, 2}, {3.85F, 3.5F})) <= 1e-5);
}

TEST_CASE("places that are no numbers or far away read no element outside of x") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const Tensor x = floats({1, 1, 1, 1}, {5});
  const Tensor grid = floats({1, 1, 4, 2}, {nan, 0, infinite, 0, 1e30F, 0, -1e30F, 0});
  for (const char* padding : {"zeros", "border", "reflection"})
    for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
      const OneNode node("GridSample", 16,
                         {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}});
      CHECK_NOTHROW(node({x, grid}));
    }
  CHECK(OneNode("GridSample", 16)({x, grid})[0].as<float>()[3] == 0);
}

TEST_CASE("a grid that does not fit x, and modes that the version does not have, are errors") {
  const Tensor x = floats({1, 1, 1, 1}, {5});
  CHECK(OneNode("GridSample", 16).error({x, floats({1, 1, 1, 3}, {0, 0, 0})}).find("does not fit x") !=
        std::string::npos);
  const Tensor grid = floats({1, 1, 1, 2}, {0, 0});
  CHECK(OneNode("GridSample", 16, {{"mode", std::string("linear")}}).error({x, grid}) ==
        "one.onnx: node 0 (GridSample): the mode 'linear' is not supported");
  CHECK(OneNode("GridSample", 16, {{"padding_mode", std::string("wrap")}}).error({x, grid}) ==
        "one.onnx: node 0 (GridSample): padding_mode must be zeros, border or reflection, not 'wrap'");
}

TEST_CASE("AffineGrid moves the places of an image") {
  const OneNode node("AffineGrid", 20);
  const Tensor moved = floats({1, 2, 3}, {2, 0, 0.5F, 0, 1, 0});
  CHECK(node({moved, integers({4}, {1, 1, 1, 2})})[0] == floats({1, 1, 2, 2}, {-0.5F, 0, 1.5F, 0}));
  const OneNode aligned("AffineGrid", 20, {{"align_corners", 1}});
  CHECK(aligned({moved, integers({4}, {1, 1, 1, 2})})[0] == floats({1, 1, 2, 2}, {-1.5F, 0, 2.5F, 0}));
  CHECK(node.error({moved, integers({5}, {1, 1, 1, 2, 2})}).find("do not fit an image with 5 axes") !=
        std::string::npos);
  CHECK(node.error({moved, integers({4}, {1, 1, 0, 2})}).find("an extent 0 is impossible") !=
        std::string::npos);
  CHECK(node.error({moved, integers({4}, {1, 1, 1 << 20, 1 << 20})}).find("is impossible") !=
        std::string::npos);
}

}  // namespace plexaura::onnx_grid_sample_test

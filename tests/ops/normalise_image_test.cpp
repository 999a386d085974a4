#include "core/ops/normalise_image.h"

#include <doctest/doctest.h>
#include <limits>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::normalise_image_test {

namespace {

Tensor normalised(const Tensor& x, const PixelScale& scale) {
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const reference::Index& index) {
    const auto channel = static_cast<std::size_t>(index[1]);
    const double mean = scale.mean[scale.mean.size() == 1 ? 0 : channel];
    const double stddev = scale.stddev[scale.stddev.size() == 1 ? 0 : channel];
    reference::at(y, index) = (reference::at(x, index) / 255 - mean) / stddev;
  });
  return y;
}

OpCase image_case(Shape shape, PixelScale scale, DType dtype = DType::float32) {
  return {"normalise_image, " + to_string(shape) + " as " + std::string(name_of(dtype)),
          "normalise_image",
          [=](Graph&, auto of) {
            return std::vector{normalise_image(of[0], {scale, dtype})};
          },
          {{std::move(shape), whole(0, 256), DType::uint8}},
          [=](auto of) { return std::vector{normalised(of[0], scale)}; },
          false,
          false,
          {dtype}};
}

const PixelScale three{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

const Cases cases({
    image_case({2, 3, 5, 7}, three),
    image_case({2, 3, 5, 7}, three, DType::float64),
    image_case({2, 3, 5, 7}, three, DType::bfloat16),
    image_case({2, 3, 5, 7}, three, DType::float16),
    image_case({3, 17, 2, 2}, {{0.5}, {0.25}}),
    image_case({4, 1, 28, 28}, {}),
    image_case({2, 3}, {{0.25}, {0.5, 1, 2}}),
    image_case({9, 3, 70, 70}, three),
    image_case({0, 3, 2, 2}, three),
});

WrongCase refused(const std::string& name, const TensorType& type, const NormaliseImageOptions& options,
                  std::vector<std::string> words) {
  return {"normalise_image, " + name, "normalise_image",
          [=](Graph& graph) { normalise_image(graph.input("x", type), options); }, std::move(words)};
}

const TensorType image{DType::uint8, {1, 3, 2, 2}};

const WrongCases wrong({
    refused("floats", {DType::float32, {1, 3, 2, 2}}, {}, {"bytes of images", "uint8"}),
    refused("one axis", {DType::uint8, {3}}, {}, {"[N, C, ...]", "reshape"}),
    refused("to integers", image, {.dtype = DType::int32}, {"floating"}),
    refused("two means", image, {.scale = {{0, 1}, {1}}}, {"mean has 2 numbers", "3 channels"}),
    refused("no stddev", image, {.scale = {{0}, {}}}, {"stddev has 0 numbers"}),
    refused("stddev of 0", image, {.scale = {{0}, {1, 0, 1}}}, {"above 0"}),
    refused("an infinite mean", image, {.scale = {{std::numeric_limits<double>::infinity()}, {1}}},
            {"finite"}),
    refused("a mean beyond float32", image, {.scale = {{1e39}, {1}}}, {"finite"}),
    refused("a stddev that is 0 in float32", image, {.scale = {{0}, {1e-46}}}, {"above 0"}),
});

}  // namespace

TEST_CASE("normalise_image: values") { check_all(cases); }
TEST_CASE("normalise_image: what it refuses") { check_all(wrong); }

// Black and white, as the bits of torchvision's ToTensor and Normalize.
TEST_CASE("normalise_image rounds as torchvision does") {
  Graph graph;
  const Tensor bytes = Tensor::of<std::uint8_t>({2, 3, 1}, {0, 0, 0, 255, 255, 255});
  const Node y = normalise_image(graph.input("x", bytes.type()), {.scale = three});
  CHECK(Runner(graph, {y}, test_backend())({bytes})[0] ==
        Tensor::of<float>({2, 3, 1}, {-2.1179039478302F, -2.0357141494750977F, -1.804444432258606F,
                                      2.248908281326294F, 2.4285714626312256F, 2.640000104904175F}));
}

}  // namespace plexaura::testing::normalise_image_test

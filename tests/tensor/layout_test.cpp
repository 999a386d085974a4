#include "core/tensor/layout.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/tensor/tensor.h"

namespace plexaura::testing::layout_test {

namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor(TensorType{DType::float32, shape});
  float next = 1;
  for (float& value : tensor.as<float>()) value = next++;
  return tensor;
}

std::vector<float> physical(const Tensor& tensor, const Layout& layout) {
  std::vector<float> memory(static_cast<std::size_t>(layout.elements(tensor.shape())), -1);
  reorder(tensor.data(), Layout::row_major(tensor.shape().rank()),
          reinterpret_cast<std::byte*>(memory.data()), layout, tensor.type());
  return memory;
}

}  // namespace

TEST_CASE("blocked layouts: names, padding, elements") {
  const Layout blocked({0, 1, 2, 3}, {{1, 8}});
  CHECK(to_string(blocked) == "aBcd8b");
  CHECK(to_string(Layout::row_major(3)) == "abc");
  CHECK(blocked.padded({2, 3, 4, 5}) == Shape{2, 8, 4, 5});
  CHECK(blocked.elements({2, 17, 4, 5}) == 2 * 24 * 4 * 5);
  CHECK(!blocked.is_row_major());
  CHECK(Layout::row_major(4).is_row_major());
}

TEST_CASE("a reorder puts channels last and fills padding with zeros") {
  const Tensor tensor = counting({1, 3, 2, 1});  // channels 1 2 | 3 4 | 5 6
  CHECK(physical(tensor, Layout({0, 2, 3, 1})) == std::vector<float>{1, 3, 5, 2, 4, 6});
  CHECK(physical(tensor, Layout({0, 2, 3, 1}, {{1, 4}})) == std::vector<float>{1, 3, 5, 0, 2, 4, 6, 0});
}

TEST_CASE("reorders there and back give the same tensor, with 3 and 17 channels") {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{2, 17, 3, 2}, Shape{0, 3, 4, 5}, Shape{1, 1, 1, 1}})
    for (const Layout& layout : {Layout({0, 2, 3, 1}), Layout({0, 1, 2, 3}, {{1, 16}}),
                                 Layout({1, 0, 2, 3}, {{1, 4}, {0, 2}, {1, 2}})}) {
      const Tensor tensor = counting(shape);
      const std::vector<float> memory = physical(tensor, layout);
      Tensor back(tensor.type());
      reorder(reinterpret_cast<const std::byte*>(memory.data()), layout, back.data(), Layout::row_major(4),
              tensor.type());
      CHECK(back == tensor);
      CHECK(std::ranges::count(memory, 0.0F) ==
            static_cast<std::ptrdiff_t>(memory.size()) - tensor.elements());
    }
}

TEST_CASE("offsets of an element are one term for each axis") {
  const Layout layout({0, 1, 2}, {{1, 4}, {2, 2}});
  const Shape shape{2, 5, 3};
  const auto offsets = layout.axis_offsets(shape);
  const Tensor tensor = counting(shape);
  const std::vector<float> memory = physical(tensor, layout);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 5; ++j)
      for (std::int64_t k = 0; k < 3; ++k) {
        const std::int64_t offset = offsets[0][static_cast<std::size_t>(i)] +
                                    offsets[1][static_cast<std::size_t>(j)] +
                                    offsets[2][static_cast<std::size_t>(k)];
        CHECK(memory[static_cast<std::size_t>(offset)] ==
              tensor.as<float>()[static_cast<std::size_t>((i * 5 + j) * 3 + k)]);
      }
}

}  // namespace plexaura::testing::layout_test

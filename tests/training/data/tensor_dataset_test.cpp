#include "training/data/tensor_dataset.h"

#include <doctest/doctest.h>
#include <limits>

#include "tests/support/error_text.h"

namespace plexaura::testing::tensor_dataset_test {

namespace {

Tensor floats(Shape shape) { return Tensor({DType::float32, std::move(shape)}); }

}  // namespace

TEST_CASE("tensors are samples along their first axis") {
  const TensorDataset data({{"x", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
                            {"y", Tensor::of<std::int64_t>({3}, {7, 8, 9})}});
  CHECK(data.size() == 3);
  CHECK(data.fields() == std::vector<Field>{{"x", {DType::float32, {2}}}, {"y", {DType::int64, {}}}});
  Tensor x = floats({2});
  Tensor y({DType::int64, {}});
  const std::span<std::byte> values[] = {{x.data(), x.bytes()}, {y.data(), y.bytes()}};
  data.read_fields(2, {}, values);
  CHECK(x == Tensor::of<float>({2}, {5, 6}));
  CHECK(y == Tensor::scalar<std::int64_t>(9));
}

TEST_CASE("tensors that are no samples are refused by name") {
  CHECK(user_error([] { TensorDataset({}); }) ==
        "a TensorDataset was made without tensors; give it at least one");
  CHECK(user_error([] {
          TensorDataset({{"x", floats({2})}, {"x", floats({2})}});
        }) == "TensorDataset: 'x' is given twice; give each tensor its own name");
  CHECK(user_error([] {
          TensorDataset({{"x", floats({})}});
        }) == "TensorDataset: 'x' is a scalar; its first axis must be that of the samples");
  CHECK(user_error([] {
          TensorDataset({{"x", floats({2, 3})}, {"y", floats({3})}});
        }).starts_with("TensorDataset: 'y' is float32[3] and 'x' is float32[2,3]; the first axis"));
  CHECK(user_error([] {
          TensorDataset({{"x", Tensor::of<float>({3}, {1, 2, std::numeric_limits<float>::quiet_NaN()})}});
        }) ==
        "TensorDataset: 'x' has NaN at element 2; the values of samples are finite, so correct the data");
}

}  // namespace plexaura::testing::tensor_dataset_test

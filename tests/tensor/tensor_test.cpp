#include "core/tensor/tensor.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "core/base/machine_memory.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::tensor_test {

namespace {

Tensor taken(Tensor& from) { return std::move(from); }

}  // namespace

TEST_CASE("tensors start as zeros, aligned, and are values") {
  Tensor tensor(TensorType{DType::float32, {3}});
  CHECK(tensor.to_doubles() == std::vector<double>{0, 0, 0});
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
  const Tensor copy = tensor;
  tensor.as<float>()[1] = 5;
  CHECK(copy.to_doubles()[1] == 0);
  CHECK(Tensor(TensorType{DType::float32, {0, 3}}).elements() == 0);
}

TEST_CASE("tensors are equal bit for bit") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Tensor::scalar(nan) == Tensor::scalar(nan));
  CHECK(!(Tensor::scalar(0.0) == Tensor::scalar(-0.0)));
  CHECK(!(Tensor::scalar(1.0) == Tensor::scalar(1.0F)));
  CHECK(!(Tensor::of<double>({2}, {1, 2}) == Tensor::of<double>({2, 1}, {1, 2})));
}

TEST_CASE("cast and reshape make copies") {
  const Tensor tensor = Tensor::of<double>({2, 2}, {1.9, -1.9, 0, 300});
  CHECK(tensor.cast(DType::int32).to_doubles() == std::vector<double>{1, -1, 0, 300});
  CHECK(tensor.cast(DType::boolean).to_doubles() == std::vector<double>{1, 1, 0, 1});
  CHECK(tensor.reshaped({4}).shape() == Shape{4});
}

TEST_CASE("cast takes what does not fit to the nearest value, and NaN to 0") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor tensor = Tensor::of<double>({6}, {nan, infinity, -infinity, 1e30, 300, -1});
  for (const DType from : {DType::float64, DType::float32, DType::bfloat16}) {
    const Tensor wide = tensor.cast(from);
    CHECK(wide.cast(DType::uint8).to_doubles() == std::vector<double>{0, 255, 0, 255, 255, 0});
    CHECK(wide.cast(DType::int32).to_doubles() ==
          std::vector<double>{0, 2147483647, -2147483648.0, 2147483647, 300, -1});
    const Tensor whole = wide.cast(DType::int64);
    CHECK(whole.as<std::int64_t>()[0] == 0);
    CHECK(whole.as<std::int64_t>()[1] == std::numeric_limits<std::int64_t>::max());
    CHECK(whole.as<std::int64_t>()[2] == std::numeric_limits<std::int64_t>::min());
    CHECK(whole.as<std::int64_t>()[3] == std::numeric_limits<std::int64_t>::max());
  }
  CHECK(Tensor::scalar(255.9).cast(DType::bfloat16).cast(DType::uint8).to_doubles()[0] == 255);
  CHECK(Tensor::scalar(nan).cast(DType::boolean).to_doubles()[0] == 1);
  CHECK(Tensor::scalar(std::int64_t{300}).cast(DType::uint8).to_doubles()[0] == 44);
}

TEST_CASE("what a tensor refuses") {
  Tensor tensor(TensorType{DType::float32, {3}});
  CHECK(user_error([&] { tensor.as<double>(); }).find("read as float64") != std::string::npos);
  CHECK(user_error([&] { tensor.reshaped({4}); }).find("takes 4 values and was given 3") !=
        std::string::npos);
  CHECK(user_error([&] { Tensor::of<float>({2}, {1}); }).find("takes 2 values and was given 1") !=
        std::string::npos);
}

TEST_CASE("a tensor that is larger than the available memory is refused before it is written") {
  const auto elements = static_cast<std::int64_t>(available_memory() / 2);
  const std::string text = user_error([&] { Tensor{TensorType{DType::float32, {elements}}}; });
  CHECK(text.find(" left; make it smaller") != std::string::npos);
}

TEST_CASE("a tensor that was moved from is not read, and can be assigned to") {
  Tensor from = Tensor::of<float>({2}, {1, 2});
  const Tensor to = taken(from);
  CHECK(to.to_doubles() == std::vector<double>{1, 2});
  const auto refuses = [](auto&& action) {
    CHECK(user_error(action).find("a tensor that was moved from was read or copied") != std::string::npos);
  };
  refuses([&] { from.to_doubles(); });
  refuses([&] { from.as<float>(); });
  refuses([&] { from.cast(DType::float64); });
  refuses([&] { from.reshaped({1}); });
  refuses([&] { static_cast<void>(Tensor(from)); });
  refuses([&] { static_cast<void>(from == Tensor(from.type())); });
  from = to;
  CHECK(from == to);
}

TEST_CASE("a tensor may lie in memory that others keep, and its copies do not") {
  const auto memory = std::make_shared<std::array<float, 16>>();
  (*memory)[1] = 5;
  Tensor tensor = Tensor::in({memory, reinterpret_cast<std::byte*>(memory->data())}, {DType::float32, {2}});
  CHECK(memory.use_count() == 2);
  CHECK(tensor.as<float>()[1] == 5);
  const Tensor copy = tensor;
  CHECK(memory.use_count() == 2);
  tensor.as<float>()[1] = 6;
  CHECK((*memory)[1] == 6);
  CHECK(copy.as<float>()[1] == 5);
  const Tensor moved = std::move(tensor);
  CHECK(memory.use_count() == 2);
  CHECK(moved.as<float>()[1] == 6);
}

}  // namespace plexaura::testing::tensor_test

// Tests the calls to cuBLASLt with a fake library.

#include "backends/cuda/vendor/cublaslt.h"

#include <doctest/doctest.h>

#include "tests/support/fake_cublaslt/fake_cublaslt.h"

namespace plexaura::testing::cublaslt_test {

namespace {

using cuda::vendor::Cublaslt;
using cuda::vendor::MatrixProduct;
using cuda::vendor::Plans;

std::size_t size(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
  return static_cast<std::size_t>(a * b * c);
}

template <class T>
std::vector<T> numbers(std::size_t count, int seed) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>((static_cast<int>(i) * 7 + seed) % 11 - 5);
  return values;
}

// Computes the product from its definition. The numbers are whole, so the order of sums does not matter.
template <class T>
std::vector<T> expected(const MatrixProduct& of, const std::vector<T>& a, const std::vector<T>& b,
                        const std::vector<T>& bias) {
  std::vector<T> result;
  for (std::int64_t p = 0; p < of.products; ++p)
    for (std::int64_t i = 0; i < of.rows; ++i)
      for (std::int64_t j = 0; j < of.columns; ++j) {
        T sum = of.bias ? bias[static_cast<std::size_t>(j)] : 0;
        for (std::int64_t k = 0; k < of.inner; ++k) {
          const std::int64_t in_a = of.transpose_a ? k * of.rows + i : i * of.inner + k;
          const std::int64_t in_b = of.transpose_b ? j * of.inner + k : k * of.columns + j;
          sum += a[static_cast<std::size_t>((of.one_a ? 0 : p) * of.rows * of.inner + in_a)] *
                 b[static_cast<std::size_t>((of.one_b ? 0 : p) * of.inner * of.columns + in_b)];
        }
        result.push_back(sum);
      }
  return result;
}

template <class T>
std::vector<T> computed(const MatrixProduct& of, std::vector<T>& a, std::vector<T>& b, std::vector<T>& bias) {
  const Plans plans = Cublaslt({}).plans(of);
  REQUIRE(plans.size() == 2);
  std::vector<T> result(size(of.products, of.rows, of.columns));
  const auto address = [](std::vector<T>& values) { return reinterpret_cast<Address>(values.data()); };
  const Address inputs[] = {address(a), address(b), address(bias)};
  plans[0]->bind(std::span(inputs).first(of.bias ? 3 : 2), address(result), nullptr)(nullptr);
  return result;
}

template <class T>
void check_products(DType dtype, bool bias) {
  for (int bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    for (const std::int64_t products : {1, 3}) {
      const MatrixProduct of{.dtype = dtype,
                             .rows = 2,
                             .columns = 5,
                             .inner = 3,
                             .transpose_a = (bits & 1) != 0,
                             .transpose_b = (bits & 2) != 0,
                             .products = products,
                             .one_a = (bits & 4) != 0,
                             .one_b = (bits & 8) != 0,
                             .bias = bias};
      auto a = numbers<T>(size(of.one_a ? 1 : products, of.rows, of.inner), 1);
      auto b = numbers<T>(size(of.one_b ? 1 : products, of.inner, of.columns), 4);
      auto added = numbers<T>(size(of.columns, 1), 2);
      CHECK(computed(of, a, b, added) == expected(of, a, b, added));
    }
  }
}

}  // namespace

TEST_CASE("cuBLASLt is given row-major matrices, transposed, repeated or one behind the other") {
  check_products<float>(DType::float32, false);
  check_products<double>(DType::float64, false);
}

TEST_CASE("cuBLASLt adds a bias to each row, but not in float64") {
  check_products<float>(DType::float32, true);
  Cublaslt({}).plans({.bias = true});
  CHECK(fake_cublaslt::recorded().alignment_of_bias == 64);
  CHECK(Cublaslt({}).plans({.dtype = DType::float64, .bias = true}).empty());
}

TEST_CASE("cuBLASLt rounds float32 only where it may, and adds 16-bit floats in float32") {
  const auto recorded_for = [](DType dtype, bool tf32) {
    Cublaslt({.tf32 = tf32}).plans({.dtype = dtype});
    return fake_cublaslt::recorded();
  };
  CHECK(recorded_for(DType::float32, false).computed_in == CUBLAS_COMPUTE_32F);
  CHECK(recorded_for(DType::float32, true).computed_in == CUBLAS_COMPUTE_32F_FAST_TF32);
  CHECK(recorded_for(DType::float64, true).computed_in == CUBLAS_COMPUTE_64F);
  CHECK(recorded_for(DType::float64, true).type_of_factors == CUDA_R_64F);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const auto told = recorded_for(dtype, true);
    CHECK(told.computed_in == CUBLAS_COMPUTE_32F);
    CHECK(told.type_of_factors == CUDA_R_32F);
    CHECK(told.reduction_schemes == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  }
}

TEST_CASE("cuBLASLt's plans know their scratch memory, and operands lie at multiples of 64 bytes") {
  const Plans plans = Cublaslt({}).plans({});
  REQUIRE(plans.size() == 2);
  CHECK(plans[0]->name() == "cublaslt 10.11.16.12.13.14.15.17.18");
  CHECK(plans[0]->workspace() == fake_cublaslt::workspace);
  CHECK(plans[1]->workspace() == 0);
  CHECK(fake_cublaslt::recorded().least_alignment == 64);
  CHECK(fake_cublaslt::recorded().most_workspace > 0);
}

TEST_CASE("cuBLASLt's plans keep their names where the library ranks them otherwise") {
  const Plans plans = Cublaslt({}).plans({});
  fake_cublaslt::is_reordered = true;
  const Plans reordered = Cublaslt({}).plans({});
  fake_cublaslt::is_reordered = false;
  REQUIRE(plans.size() == 2);
  REQUIRE(reordered.size() == 2);
  CHECK(plans[0]->name() != plans[1]->name());
  CHECK(reordered[0]->name() == plans[1]->name());
  CHECK(reordered[1]->name() == plans[0]->name());
}

TEST_CASE("cuBLASLt enqueues on the stream that it is given, with the scratch memory of its plan") {
  const Plans plans = Cublaslt({}).plans({});
  float one = 2;
  float result = 0;
  const Address inputs[] = {reinterpret_cast<Address>(&one), reinterpret_cast<Address>(&one)};
  int stream = 0;
  const auto work = plans.at(0)->bind(inputs, reinterpret_cast<Address>(&result), nullptr);
  CHECK(result == 0);
  work(reinterpret_cast<cuda::runtime::Stream*>(&stream));
  CHECK(result == 4);
  CHECK(fake_cublaslt::recorded().stream == &stream);
  CHECK(fake_cublaslt::recorded().workspace == fake_cublaslt::workspace);
}

TEST_CASE("a product that cuBLASLt does not support has no plans") {
  CHECK(Cublaslt({}).plans({.columns = fake_cublaslt::refused_extent}).empty());
}

TEST_CASE("cuBLASLt's version is told") { CHECK(cuda::vendor::cublaslt_version() == "cuBLAS 13.1.0"); }

}  // namespace plexaura::testing::cublaslt_test

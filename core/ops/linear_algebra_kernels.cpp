#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/linear_algebra.h"

// The reference kernels of linear_algebra.h. Sums are added up in double.

namespace plexaura {

namespace {

using namespace portable;

// A matrix in memory. `row` is the distance between neighbouring rows, and `column` that between neighbouring columns, in
// elements.
template <class T>
struct Grid {
  T* first;
  std::int64_t row;
  std::int64_t column;
  T& operator()(std::int64_t i, std::int64_t j) const { return first[i * row + j * column]; }
  Grid transposed() const { return {first, column, row}; }
};

struct Sizes {
  std::int64_t count;  // number of matrices
  std::int64_t rows;
  std::int64_t columns;
  explicit Sizes(const Shape& shape)
      : count(1), rows(shape[shape.rank() - 2]), columns(shape[shape.rank() - 1]) {
    for (std::int64_t axis = 0; axis + 2 < shape.rank(); ++axis) count *= shape[axis];
  }
};

// The matrix with this number.
template <class T>
Grid<T> matrix_of(const HostView& view, std::int64_t number) {
  const Sizes sizes(view.shape());
  return {view.as<T>() + number * sizes.rows * sizes.columns, sizes.columns, 1};
}

// Solves a x = b for one column of b, which x replaces. Goes from the first row to the last if a is lower triangular, and
// otherwise from the last to the first.
template <class T>
void substitute(const Grid<const T>& a, const Grid<T>& x, std::int64_t column, std::int64_t size,
                bool is_lower, bool has_unit_diagonal) {
  for (std::int64_t step = 0; step < size; ++step) {
    const std::int64_t i = is_lower ? step : size - 1 - step;
    const std::int64_t begin = is_lower ? 0 : i + 1;
    const std::int64_t end = is_lower ? i : size;
    double sum = static_cast<double>(x(i, column));
    for (std::int64_t k = begin; k < end; ++k)
      sum -= static_cast<double>(a(i, k)) * static_cast<double>(x(k, column));
    x(i, column) = static_cast<T>(has_unit_diagonal ? sum : sum / static_cast<double>(a(i, i)));
  }
}

// Writes the Cholesky factor of a to `lower`. Returns false if a is not positive definite. Reads the lower triangle of a.
template <class T>
bool factorise_symmetric(const Grid<const T>& a, const Grid<T>& lower, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = static_cast<double>(a(i, j));
      for (std::int64_t k = 0; k < j; ++k)
        sum -= static_cast<double>(lower(i, k)) * static_cast<double>(lower(j, k));
      if (i == j && !(sum > 0)) return false;
      lower(i, j) = static_cast<T>(i == j ? std::sqrt(sum) : sum / static_cast<double>(lower(j, j)));
    }
    for (std::int64_t j = i + 1; j < size; ++j) lower(i, j) = 0;
  }
  return true;
}

// Factorises in place, with the largest element of each column as its pivot. Writes to the last column the number of the
// row with which each row was exchanged.
template <class T>
void factorise_in_place(const Grid<T>& of, std::int64_t size) {
  for (std::int64_t j = 0; j < size; ++j) {
    for (std::int64_t i = 0; i < size; ++i) {
      double sum = static_cast<double>(of(i, j));
      for (std::int64_t k = 0; k < std::min(i, j); ++k)
        sum -= static_cast<double>(of(i, k)) * static_cast<double>(of(k, j));
      of(i, j) = static_cast<T>(sum);
    }
    std::int64_t pivot = j;
    for (std::int64_t i = j + 1; i < size; ++i)
      if (std::abs(of(i, j)) > std::abs(of(pivot, j))) pivot = i;
    of(j, size) = static_cast<T>(pivot);
    if (pivot != j)
      for (std::int64_t k = 0; k < size; ++k) std::swap(of(j, k), of(pivot, k));
    for (std::int64_t i = j + 1; i < size && of(j, j) != 0; ++i)
      of(i, j) = static_cast<T>(static_cast<double>(of(i, j)) / static_cast<double>(of(j, j)));
  }
}

template <class T>
std::int64_t exchanged_row(const Grid<const T>& factors, std::int64_t row, std::int64_t size) {
  return static_cast<std::int64_t>(factors(row, size));
}

// Solves the equation of the factors for one column of b, which x replaces.
template <class T>
void solve_column(const Grid<const T>& factors, const Grid<T>& x, std::int64_t column, std::int64_t size,
                  bool transpose) {
  if (!transpose) {
    for (std::int64_t i = 0; i < size; ++i)
      std::swap(x(i, column), x(exchanged_row(factors, i, size), column));
    substitute(factors, x, column, size, true, true);
    substitute(factors, x, column, size, false, false);
    return;
  }
  substitute(factors.transposed(), x, column, size, true, false);
  substitute(factors.transposed(), x, column, size, false, true);
  for (std::int64_t i = size; i-- > 0;) std::swap(x(i, column), x(exchanged_row(factors, i, size), column));
}

template <class T>
double determinant_of(const Grid<const T>& factors, std::int64_t size, bool logarithm) {
  bool is_negative = false;
  double product = 1;
  double sum_of_logarithms = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto pivot = static_cast<double>(factors(i, i));
    is_negative ^= (pivot < 0) != (exchanged_row(factors, i, size) != i);
    product *= std::abs(pivot);
    sum_of_logarithms += std::log(std::abs(pivot));
  }
  if (!logarithm) return is_negative ? -product : product;
  const bool is_zero = std::isinf(sum_of_logarithms) && sum_of_logarithms < 0;
  return is_negative && !is_zero ? std::numeric_limits<double>::quiet_NaN() : sum_of_logarithms;
}

template <class T>
void require_regular(const HostView& factors) {
  const Sizes sizes(factors.shape());
  for (std::int64_t number = 0; number < sizes.count; ++number)
    for (std::int64_t i = 0; i < sizes.rows; ++i)
      if (matrix_of<const T>(factors, number)(i, i) == 0)
        throw UserError(
            fmt::format("matrix {} is singular, so that no equation with it can be solved; check it or add a "
                        "small number to its diagonal",
                        number));
}

// Calls f(std::type_identity<T>{}) for the dtypes that the shape rules allow.
template <class F>
void dispatch_wide(DType dtype, const F& f) {
  if (dtype == DType::float64)
    f(std::type_identity<double>{});
  else
    f(std::type_identity<float>{});
}

// Calls body(number of the matrix, column) for all columns of these matrices of `size` rows.
template <class Body>
void for_each_column(const HostView& matrices, std::int64_t size, const Body& body) {
  const Sizes sizes(matrices.shape());
  if (sizes.columns == 0) return;
  parallel_for(sizes.count * sizes.columns, size * size,
               [&](std::int64_t i) { body(i / sizes.columns, i % sizes.columns); });
}

}  // namespace

// A failure is marked by NaN in the first element, since a thread of the loop must not throw.
void Cholesky::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Sizes sizes(result.shape());
  dispatch_wide(result.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(sizes.count, sizes.rows * sizes.rows * sizes.rows, [&](std::int64_t number) {
      const Grid<T> lower = matrix_of<T>(result, number);
      if (!factorise_symmetric(matrix_of<const T>(call.inputs[0], number), lower, sizes.rows))
        lower(0, 0) = std::numeric_limits<T>::quiet_NaN();
    });
    for (std::int64_t number = 0; number < sizes.count; ++number)
      if (std::isnan(matrix_of<T>(result, number)(0, 0)))
        throw UserError(
            fmt::format("matrix {} is not positive definite; check it or add a small number to its "
                        "diagonal",
                        number));
  });
}

void TriangularSolve::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  copy_bytes(call.inputs[1], result);
  const std::int64_t size = Sizes(result.shape()).rows;
  const bool transpose = options().transpose;
  dispatch_wide(result.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_column(result, size, [&](std::int64_t number, std::int64_t column) {
      const Grid<const T> a = matrix_of<const T>(call.inputs[0], number);
      substitute(transpose ? a.transposed() : a, matrix_of<T>(result, number), column, size,
                 options().upper == transpose, options().unit_diagonal);
    });
  });
}

void LuFactors::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Sizes sizes(result.shape());
  dispatch_wide(result.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(sizes.count, sizes.rows * sizes.rows * sizes.rows, [&](std::int64_t number) {
      const Grid<const T> a = matrix_of<const T>(call.inputs[0], number);
      const Grid<T> factors = matrix_of<T>(result, number);
      for (std::int64_t i = 0; i < sizes.rows; ++i) std::copy_n(&a(i, 0), sizes.rows, &factors(i, 0));
      factorise_in_place(factors, sizes.rows);
    });
  });
}

void LuSolve::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  copy_bytes(call.inputs[2], result);
  const std::int64_t size = Sizes(result.shape()).rows;
  dispatch_wide(result.dtype(), [&]<class T>(std::type_identity<T>) {
    require_regular<T>(call.inputs[1]);
    for_each_column(result, size, [&](std::int64_t number, std::int64_t column) {
      solve_column(matrix_of<const T>(call.inputs[1], number), matrix_of<T>(result, number), column, size,
                   options().transpose);
    });
  });
}

void LuDet::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const std::int64_t size = Sizes(call.inputs[1].shape()).rows;
  dispatch_wide(result.dtype(), [&]<class T>(std::type_identity<T>) {
    for (std::int64_t number = 0; number < result.elements(); ++number)
      result.as<T>()[number] = static_cast<T>(
          determinant_of(matrix_of<const T>(call.inputs[1], number), size, options().logarithm));
  });
}

}  // namespace plexaura

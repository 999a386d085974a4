#include "core/ops/matmul.h"

#include "backends/cpu/portable/portable.h"
#include "core/loops/gemm.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// A stack of matrices as it enters the product: strides after the transpose option, batch axes broadcast.
template <class T>
struct Matrices {
  Matrices(const HostView& view, bool transpose, const Shape& result)
      : data(view.as<T>()), shape(view.shape()), product(result) {
    const std::int64_t last = shape[shape.rank() - 1];
    row_step = transpose ? 1 : last;
    column_step = transpose ? last : 1;
  }

  // The matrix that enters the product of this index.
  const T* at(std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::int64_t axis = product.rank() - 2; axis-- > 0;) {
      offset += index % product[axis] * broadcast_stride(shape, product, axis);
      index /= product[axis];
    }
    return data + offset;
  }

  const T* data;
  const Shape& shape;
  const Shape& product;
  std::int64_t row_step;
  std::int64_t column_step;
};

template <class T, class Sum>
void load(const T* src, std::int64_t step, std::int64_t count, Sum* dst) {
  if (step == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = static_cast<Sum>(src[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = static_cast<Sum>(src[i * step]);
  }
}

template <class T>
void matmul_of(const HostCall& call, std::int64_t inner) {
  using Sum = Products<T>;
  const MatMulOptions& options = op_cast<MatMul>(call.op).options();
  const Shape& result = call.outputs[0].shape();
  const Matrices<T> a(call.inputs[0], options.transpose_a, result);
  const Matrices<T> b(call.inputs[1], options.transpose_b, result);
  const std::int64_t rows = result[result.rank() - 2];
  const std::int64_t columns = result[result.rank() - 1];
  T* dst = call.outputs[0].as<T>();
  gemm<Sum>(
      result.elements() / (rows * columns), rows, columns, inner,
      [&](std::int64_t product, std::int64_t row, std::int64_t k, std::int64_t count, Sum* to) {
        load(a.at(product) + row * a.row_step + k * a.column_step, a.column_step, count, to);
      },
      [&](std::int64_t product, std::int64_t k, std::int64_t column, std::int64_t count, Sum* to) {
        load(b.at(product) + k * b.row_step + column * b.column_step, b.column_step, count, to);
      },
      [&](std::int64_t product, std::int64_t row, std::int64_t column, std::int64_t count, const Sum* from) {
        T* to = dst + (product * rows + row) * columns + column;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
      });
}

}  // namespace

void portable_matmul(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Shape& a = call.inputs[0].shape();
  const bool transposed = op_cast<MatMul>(call.op).options().transpose_a;
  const std::int64_t inner = a[a.rank() - (transposed ? 2 : 1)];
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) { matmul_of<T>(call, inner); });
}

}  // namespace plexaura

// The matrix product. It is correct for every type and size, but slow: one thread computes one element.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/matmul.h"

namespace plexaura::cuda {

// An operand of matrix products: a stack of matrices.
struct Matrices {
  Strides<1> batch;  // maps the index of a product to the first element of its matrix
  std::int64_t row_step;
  std::int64_t column_step;
};

template <class T>
struct MatMulKernel {
  Global<const T> a;
  Global<const T> b;
  Global<T> dst;
  Matrices of_a;
  Matrices of_b;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      const std::int64_t product = i / (rows * columns);
      const std::int64_t row = of_a.batch.place(product) + i / columns % rows * of_a.row_step;
      const std::int64_t column = of_b.batch.place(product) + i % columns * of_b.column_step;
      Products<T> sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += static_cast<Products<T>>(widen(a[row + k * of_a.column_step])) *
               static_cast<Products<T>>(widen(b[column + k * of_b.row_step]));
      dst[i] = narrow<T>(sum);
    });
  }
};

namespace {

Matrices matrices(const Shape& shape, const Shape& result, bool transpose) {
  const std::int64_t last = shape[shape.rank() - 1];
  Matrices of{{}, transpose ? 1 : last, transpose ? last : 1};
  for (std::int64_t axis = 0; axis + 2 < result.rank(); ++axis)
    of.batch.add_axis(result[axis], {broadcast_stride(shape, result, axis)});
  return of;
}

}  // namespace

void cuda_matmul(const Call& call) {
  const MatMulOptions& options = op_cast<MatMul>(call.op).options();
  const View& result = call.outputs[0];
  const Shape& shape = result.shape();
  const Shape& a = call.inputs[0].shape();
  const std::int64_t inner = a[a.rank() - (options.transpose_a ? 2 : 1)];
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            MatMulKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(), result.out<T>(),
                            matrices(a, shape, options.transpose_a),
                            matrices(call.inputs[1].shape(), shape, options.transpose_b),
                            shape[shape.rank() - 2], shape[shape.rank() - 1], inner});
  });
}

}  // namespace plexaura::cuda

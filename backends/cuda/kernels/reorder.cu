// Copies a value from one layout to another.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/base/error.h"

namespace plexaura::cuda {

// A layout as a list of pieces of axes, outermost first.
struct Pieces {
  static constexpr int most = 16;

  int count = 0;
  std::int64_t axes[most] = {};
  std::int64_t extents[most] = {};  // sizes of the pieces
  std::int64_t steps[most] = {};    // distance along the axis between two elements of the piece
  std::int64_t strides[most] = {};  // distance in memory between two elements of the piece, in elements
};

template <class T>
struct ReorderKernel {
  Global<const T> src;
  Global<T> dst;
  Pieces from;
  Pieces to;
  std::int64_t shape[most_axes];

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t place) {
      std::int64_t index[most_axes] = {};
      for (int i = 0; i < to.count; ++i)
        index[to.axes[i]] += place / to.strides[i] % to.extents[i] * to.steps[i];
      bool inside = true;
      std::int64_t source = 0;
      for (int i = 0; i < from.count; ++i) {
        inside = inside && index[from.axes[i]] < shape[from.axes[i]];
        source += index[from.axes[i]] / from.steps[i] % from.extents[i] * from.strides[i];
      }
      dst[place] = inside ? src[source] : T(0);
    });
  }
};

namespace {

Pieces pieces_of(const Layout& layout, const Shape& shape) {
  if (layout.order().size() + layout.blocks().size() > Pieces::most)
    throw InternalError("a layout has more pieces than the kernels for CUDA copy (16)");
  Pieces pieces;
  const Shape padded = layout.padded(shape);
  const auto add = [&](std::int64_t axis, std::int64_t extent, std::int64_t step) {
    pieces.axes[pieces.count] = axis;
    pieces.extents[pieces.count] = extent;
    pieces.steps[pieces.count++] = step;
  };
  for (const std::int64_t axis : layout.order())
    add(axis, padded[axis] / layout.block_of(axis), layout.block_of(axis));
  // Number of elements of each axis within the current piece.
  std::vector<std::int64_t> left(layout.order().size());
  for (const std::int64_t axis : layout.order()) left[static_cast<std::size_t>(axis)] = layout.block_of(axis);
  for (const Layout::Block& block : layout.blocks()) {
    std::int64_t& inner = left[static_cast<std::size_t>(block.axis)];
    inner /= block.size;
    add(block.axis, block.size, inner);
  }
  std::int64_t stride = 1;
  for (int i = pieces.count; i-- > 0; stride *= pieces.extents[i]) pieces.strides[i] = stride;
  return pieces;
}

}  // namespace

void enqueue_reorder(const Call& call, const Layout& from, const Layout& to) {
  const View& src = call.inputs[0];
  const View& dst = call.outputs[0];
  const std::int64_t count = to.elements(dst.shape());
  dispatch_size(dst.dtype(), [&]<class T>(std::type_identity<T>) {
    ReorderKernel<T> kernel{{src.address, from.elements(src.shape())},
                            {dst.address, count},
                            pieces_of(from, src.shape()),
                            pieces_of(to, dst.shape()),
                            {}};
    std::copy_n(dst.shape().extents().begin(), dst.shape().rank(), kernel.shape);
    enqueue(call, blocks_for(count), kernel);
  });
}

}  // namespace plexaura::cuda

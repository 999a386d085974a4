// Kernels that read rows by their indices, or add them up by their indices.

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/strides.h"
#include "backends/cuda/kernels/wrong_index.h"
#include "core/ops/gather.h"

namespace plexaura::cuda {

// `count` indices of an axis of a value. The value is viewed as [before, extent, behind], and the gathered
// value as [before, count, behind].
struct Rows {
  Global<const std::int64_t> indices;
  std::int64_t extent;
  std::int64_t behind;
  Global<WrongIndex> wrong;
  const std::string* launch;

  // Returns index i. An index outside of the axis is reported to the host, and replaced by 0; an empty axis has no
  // element 0 either.
  PLEXAURA_DEVICE std::int64_t index(std::int64_t i) const {
    const std::int64_t index = indices[i];
    if (index >= 0 && index < extent) return index;
    tell(wrong.shared(0), {.launch = launch, .element = i, .index = index, .extent = extent});
    return 0;
  }
};

template <class T>
struct GatherKernel {
  Global<const T> src;
  Global<T> dst;
  Rows rows;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const std::int64_t count = rows.indices.count();
    block.each_item(dst.count(), [&](std::int64_t i) {
      const std::int64_t row = i / rows.behind;
      const std::int64_t from = row / count * rows.extent + rows.index(row % count);
      dst[i] = rows.extent > 0 ? src[from * rows.behind + i % rows.behind] : T{};
    });
  }
};

// One pass of a sort of the places of the indices by the index there. Each pass sorts by 8 bits, beginning
// with the lowest. The indices are divided into chunks, one for each thread. The sort is stable.
struct SortPass {
  static constexpr int bits = 8;
  static constexpr std::int64_t digits = 1 << bits;

  Rows rows;
  Global<const std::int64_t> from;  // places as sorted by the previous pass; null: the original order
  Global<std::int64_t> starts;      // start position of each digit in each chunk, [digits, chunks]
  std::int64_t chunks;
  int shift;

  PLEXAURA_DEVICE std::int64_t begin(std::int64_t chunk) const {
    return rows.indices.count() * chunk / chunks;
  }
  PLEXAURA_DEVICE std::int64_t place(std::int64_t i) const { return from ? from[i] : i; }
  PLEXAURA_DEVICE std::int64_t slot(std::int64_t place, std::int64_t chunk) const {
    return (rows.index(place) >> shift) % digits * chunks + chunk;
  }
};

// Counts how often each digit occurs in each chunk of the indices.
struct CountKernel {
  SortPass pass;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(pass.chunks, [&](std::int64_t chunk) {
      for (std::int64_t digit = 0; digit < SortPass::digits; ++digit)
        pass.starts[digit * pass.chunks + chunk] = 0;
      for (std::int64_t i = pass.begin(chunk); i < pass.begin(chunk + 1); ++i) {
        const std::int64_t slot = pass.slot(pass.place(i), chunk);
        pass.starts[slot] = pass.starts[slot] + 1;
      }
    });
  }
};

// Converts the counts to start positions, in one block.
struct StartsKernel {
  Global<std::int64_t> starts;

  PLEXAURA_DEVICE std::int64_t begin(int thread) const { return starts.count() * thread / threads; }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, std::int64_t, sums, threads);
    block.each_thread([&](int thread) {
      std::int64_t sum = 0;
      for (std::int64_t i = begin(thread); i < begin(thread + 1); ++i) sum += starts[i];
      sums[thread] = sum;
    });
    block.each_thread([&](int thread) {
      if (thread > 0) return;
      std::int64_t before = 0;
      for (int i = 0; i < threads; ++i) {
        const std::int64_t own = sums[i];
        sums[i] = before;
        before += own;
      }
    });
    block.each_thread([&](int thread) {
      std::int64_t before = sums[thread];
      for (std::int64_t i = begin(thread); i < begin(thread + 1); ++i) {
        const std::int64_t own = starts[i];
        starts[i] = before;
        before += own;
      }
    });
  }
};

struct SortKernel {
  SortPass pass;
  Global<std::int64_t> to;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(pass.chunks, [&](std::int64_t chunk) {
      for (std::int64_t i = pass.begin(chunk); i < pass.begin(chunk + 1); ++i) {
        const std::int64_t place = pass.place(i);
        const std::int64_t slot = pass.slot(place, chunk);
        const std::int64_t start = pass.starts[slot];
        to[start] = place;
        pass.starts[slot] = start + 1;
      }
    });
  }
};

// Each element adds up the gradients of all indices that point to it, in the order of the indices. The threads of a
// team compute a row of `behind` elements together, `width` at once each. The first one finds the indices.
template <class T, int width>
struct GatherGradKernel {
  Global<const T> src;
  Global<T> dst;
  Rows rows;
  Global<const std::int64_t> order;  // places of the indices, sorted by index
  int team;                          // a power of two

  // Returns the first position in `order` whose index is `row` or larger.
  PLEXAURA_DEVICE std::int64_t first_of(std::int64_t row) const {
    std::int64_t begin = 0;
    std::int64_t end = order.count();
    while (begin < end) {
      const std::int64_t middle = (begin + end) / 2;
      if (rows.index(order[middle]) < row)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }

  // Returns the sum of elements of a row. `from` is their place in the first row of the gradients.
  PLEXAURA_DEVICE Several<T, width> sum_of(std::int64_t row, std::int64_t first, std::int64_t from) const {
    Several<T, width> sum;
    for (int i = 0; i < width; ++i) sum[i] = narrow<T>(0.0F);
    for (std::int64_t k = first; k < order.count(); ++k) {
      const std::int64_t place = order[k];
      if (rows.index(place) != row) break;
      const auto added = src.template several<width>(from + place * rows.behind);
      for (int i = 0; i < width; ++i) sum[i] = narrow<T>(widen(sum[i]) + widen(added[i]));
    }
    return sum;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, std::int64_t, firsts, threads);
    const std::int64_t all = dst.count() / rows.behind;
    const int rows_at_once = threads / team;
    for (std::int64_t begin = block.index() * rows_at_once; begin < all;
         begin += block.blocks() * rows_at_once) {
      const auto row_of = [&](int thread) { return begin + thread / team; };
      block.each_thread([&](int thread) {
        if (thread % team == 0 && row_of(thread) < all)
          firsts[thread] = first_of(row_of(thread) % rows.extent);
      });
      block.each_thread([&](int thread) {
        const std::int64_t row = row_of(thread);
        if (row >= all) return;
        const std::int64_t first = firsts[thread / team * team];
        const std::int64_t before = row / rows.extent * order.count() * rows.behind;
        for (std::int64_t i = thread % team * width; i < rows.behind; i += team * width)
          dst.set_several(row * rows.behind + i, sum_of(row % rows.extent, first, before + i));
      });
    }
  }
};

namespace {

Rows rows_of(const Call& call, const Shape& whole, std::int64_t axis) {
  return {call.inputs[1].in<std::int64_t>(), whole[axis], stride_of(whole, axis),
          Global<WrongIndex>(call.wrong_index, 1), &call.name};
}

template <class T, int width>
void enqueue_gather_grad(const Call& call, const Rows& rows, const Global<const std::int64_t>& order) {
  const auto groups = static_cast<std::uint64_t>(rows.behind / width);
  const int team = static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(groups), threads));
  const std::int64_t teams = call.outputs[0].elements() / rows.behind;
  enqueue(call, blocks_for(teams * team),
          GatherGradKernel<T, width>{call.inputs[0].in<T>(), call.outputs[0].out<T>(), rows, order, team});
}

std::int64_t chunks_of(std::int64_t indices) {
  constexpr std::int64_t of_chunk = 64;
  constexpr std::int64_t most = 1024;
  return std::clamp<std::int64_t>(indices / of_chunk, 1, most);
}

Address behind(Address address, std::int64_t numbers) {
  return address + numbers * static_cast<std::int64_t>(sizeof(std::int64_t));
}

// Enqueues the sort of the indices' places in the workspace. Returns the address of the result.
Address enqueue_sort(const Call& call, const Rows& rows) {
  const std::int64_t count = rows.indices.count();
  const std::int64_t chunks = chunks_of(count);
  Address to = call.workspace;
  Address next = behind(to, count);
  const Global<std::int64_t> starts(behind(next, count), SortPass::digits * chunks);
  SortPass pass{rows, {}, starts, chunks, 0};
  do {
    enqueue(call, blocks_for(chunks), CountKernel{pass});
    enqueue(call, 1, StartsKernel{starts});
    enqueue(call, blocks_for(chunks), SortKernel{pass, {to, count}});
    pass.from = {to, count};
    std::swap(to, next);
    pass.shift += SortPass::bits;
  } while ((rows.extent - 1) >> pass.shift > 0);
  return next;
}

}  // namespace

std::size_t gather_grad_workspace(std::int64_t indices) {
  return static_cast<std::size_t>(2 * indices + SortPass::digits * chunks_of(indices)) * sizeof(std::int64_t);
}

void cuda_gather(const Call& call) {
  const View& result = call.outputs[0];
  const Shape& x = call.inputs[0].shape();
  const Rows rows = rows_of(call, x, normalise_axis(op_cast<Gather>(call.op).options().axis, x.rank()));
  dispatch_size(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            GatherKernel<T>{call.inputs[0].in<T>(), result.out<T>(), rows});
  });
}

void cuda_gather_grad(const Call& call) {
  const View& result = call.outputs[0];
  if (result.elements() == 0) return;
  const Rows rows = rows_of(call, result.shape(), op_cast<GatherGrad>(call.op).options().axis);
  const Global<const std::int64_t> order(enqueue_sort(call, rows), rows.indices.count());
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    if (rows.behind % elements_at_once<T> == 0)
      enqueue_gather_grad<T, elements_at_once<T>>(call, rows, order);
    else
      enqueue_gather_grad<T, 1>(call, rows, order);
  });
}

}  // namespace plexaura::cuda

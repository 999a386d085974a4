#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/cpu/fast/attention/attention_kinds.h"
#include "backends/cpu/fast/attention/attention_loops.h"
#include "backends/cpu/fast/elementwise/draws.h"
#include "backends/cpu/fast/elementwise/dropout_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/softmax/softmax_loops.h"

// Code that the kernels of an attention and of its gradient share: blocks of neighbouring queries, and the weights of all
// keys for the queries of a block.

namespace plexaura::fast {

// Says where the elements of a mask lie that broadcasts to the scores.
struct MaskView {
  std::vector<std::int64_t> offsets;  // of the first element, for each pair
  std::int64_t query_step = 0;
  std::int64_t key_step = 0;
};

// The random numbers of the dropout of the weights.
struct WeightsDropout {
  DrawnElements draws;
  DropoutRule rule;
};

// An attention of one dtype, without addresses.
struct AttentionPlan {
  AttentionRegion region;
  AttentionShape shape;
  MaskView mask;
  std::optional<WeightsDropout> dropout;

  std::int64_t block_queries() const;
  std::int64_t blocks() const { return (shape.queries + block_queries() - 1) / block_queries(); }
  // Returns the number of keys to which the queries of this block of a pair may attend.
  std::int64_t keys_of_block(std::int64_t block) const {
    const bool is_causal = region.mask == AttentionMaskKind::causal;
    return is_causal ? std::min(shape.keys, (block + 1) * block_queries()) : shape.keys;
  }
};

// Contiguous shares of units of work, one share for each thread.
class AttentionShares {
 public:
  // `costs` has a number for each unit that grows with its time.
  AttentionShares(const std::vector<double>& costs, double seconds);

  std::int64_t count() const { return std::ssize(begins_) - 1; }

  // Calls body(share, begin, end) for each share and its range of units.
  template <class Body>
  void run(const Body& body) const {
    parallel_pieces(count(), nanoseconds_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t share = begin; share < end; ++share)
        body(share, begins_[static_cast<std::size_t>(share)], begins_[static_cast<std::size_t>(share) + 1]);
    });
  }

 private:
  std::vector<std::int64_t> begins_;  // the first unit of each share, and the number of units
  double nanoseconds_;                // of a share
};

// The queries of a block, and the number of keys that its kernel looks at: all that one of them may attend to, or more.
struct QueryBlock {
  std::int64_t pair;
  std::int64_t first;
  std::int64_t count;
  std::int64_t keys;
};

// Returns `count` rounded up to whole panels.
template <class T>
std::int64_t in_panels(std::int64_t count) {
  return (count + panel_lanes<T> - 1) / panel_lanes<T> * panel_lanes<T>;
}

// Takes pieces of the memory of a thread, in order.
template <class T>
class ScratchPieces {
 public:
  explicit ScratchPieces(T* memory) : memory_(memory) {}
  T* take(std::int64_t elements) {
    T* piece = memory_ == nullptr ? nullptr : memory_ + taken_;
    taken_ += in_panels<T>(elements);
    return piece;
  }
  std::int64_t taken() const { return taken_; }

 private:
  T* memory_;  // null: take() only counts
  std::int64_t taken_ = 0;
};

// The addresses of the operands of a kernel. All are null while the memory of a thread is measured.
template <class T>
struct AttentionOperands {
  const T* query = nullptr;
  const T* key = nullptr;
  const T* value = nullptr;
  const T* grad = nullptr;               // of the result; null in the forward direction
  const void* mask = nullptr;            // null if none is read
  const std::int64_t* random = nullptr;  // null if nothing is dropped

  AttentionOperands() = default;
  AttentionOperands(const AttentionRegion& region, const Binding& at)
      : query(elements<T>(at.inputs[0])),
        key(elements<T>(at.inputs[1])),
        value(elements<T>(at.inputs[2])),
        grad(region.backward ? elements<T>(at.inputs[3]) : nullptr),
        mask(region.reads_mask() ? at.inputs[region.mask_input()] : nullptr),
        random(region.drops ? elements<std::int64_t>(at.inputs[region.random_input()]) : nullptr) {}
};

// Computes the weights of blocks of queries.
template <class T>
class AttentionWeights {
 public:
  AttentionWeights(const AttentionPlan& plan, const AttentionOperands<T>& at, ScratchPieces<T>& scratch)
      : plan_(plan), at_(at), keys_(scratch.take(in_panels<T>(plan.shape.keys) * plan.shape.features)) {}

  // The distance between rows of scores. Rows that begin in different sets of the cache do not evict each other.
  static std::int64_t row_step(const AttentionShape& shape) {
    return in_panels<T>(shape.keys) + panel_lanes<T>;
  }

  // Prepares for blocks of this pair.
  void enter(std::int64_t pair) {
    const auto& [pairs, queries, keys, features, values] = plan_.shape;
    const T* key = at_.key + pair * keys * features;
    pack_transposed(key, keys, features, keys_);
    skips_ = plan_.region.mask == AttentionMaskKind::causal &&
             has_finite_products(at_.query + pair * queries * features, queries, key, keys, features) &&
             has_finite_products(at_.grad == nullptr ? nullptr : at_.grad + pair * queries * values, queries,
                                 at_.value + pair * keys * values, keys, values);
  }

  // A weight of 0 times an infinite number is NaN. So keys that no query of a block may attend to are left out only if
  // no product of rows can be infinite.
  QueryBlock block(std::int64_t pair, std::int64_t number) const {
    const std::int64_t first = number * plan_.block_queries();
    const std::int64_t count = std::min(plan_.block_queries(), plan_.shape.queries - first);
    return {pair, first, count, skips_ ? plan_.keys_of_block(number) : plan_.shape.keys};
  }

  // Computes the weights before the dropout.
  void compute(const QueryBlock& block, T* weights) const {
    const AttentionShape& shape = plan_.shape;
    const std::int64_t step = row_step(shape);
    const T* query = at_.query + (block.pair * shape.queries + block.first) * shape.features;
    multiply_panels({query, shape.features, 1},
                    {keys_, panel_lanes<T> * shape.features, shape.features, block.keys},
                    {weights, step, block.count, false, true});
    for (std::int64_t row = 0; row < block.count; ++row) {
      T* scores = weights + row * step;
      mask_row(block, row, -std::numeric_limits<T>::infinity(), scores);
      if (plan_.region.mask == AttentionMaskKind::added)
        add_mask(mask_at<T>(block, row), plan_.mask.key_step, block.keys, scores);
      softmax_rows(scores, 1, block.keys, scores);
    }
  }

  // Replaces the elements of a row of scores that are masked.
  void mask_row(const QueryBlock& block, std::int64_t row, T other, T* scores) const {
    if (plan_.region.mask == AttentionMaskKind::bools) {
      choose(mask_at<bool>(block, row), plan_.mask.key_step, block.keys, other, scores);
    } else if (plan_.region.mask == AttentionMaskKind::causal) {
      const std::int64_t first = std::min(block.first + row + 1, block.keys);
      std::fill(scores + first, scores + block.keys, other);
    }
  }

  // Sets dropped elements of rows to 0, and multiplies the others. `from` may be `to`.
  void drop_rows(const QueryBlock& block, const T* from, T* to) const {
    if constexpr (std::is_same_v<T, float>) {
      const std::int64_t step = row_step(plan_.shape);
      for (std::int64_t row = 0; row < block.count; ++row) {
        const std::int64_t begin = (block.pair * plan_.shape.queries + block.first + row) * plan_.shape.keys;
        const T* x = from + row * step;
        T* y = to + row * step;
        plan_.dropout->draws.for_each_piece_of(
            begin, begin + block.keys, at_.random,
            [&](std::int64_t first, std::int64_t count, const std::uint32_t* words, std::int64_t skipped) {
              const std::int64_t key = first - begin;
              drop(plan_.dropout->rule, words + skipped, count, x + key, y + key, nullptr);
            });
      }
    }
  }

  bool drops() const { return plan_.dropout.has_value(); }

 private:
  // True if all sums of products of a row of a with a row of b are finite, by the largest elements, with room for the
  // factor of a dropout. A null a has zeros.
  static bool has_finite_products(const T* a, std::int64_t a_rows, const T* b, std::int64_t b_rows,
                                  std::int64_t columns) {
    constexpr double most = static_cast<double>(std::numeric_limits<T>::max()) * 0x1p-24;
    const double largest_a = a == nullptr ? 0 : largest_size(a, a_rows * columns);
    const double largest_b = largest_size(b, b_rows * columns);
    return largest_a * largest_b * static_cast<double>(columns) <= most && largest_b <= most;
  }

  template <class U>
  const U* mask_at(const QueryBlock& block, std::int64_t row) const {
    return static_cast<const U*>(at_.mask) + plan_.mask.offsets[static_cast<std::size_t>(block.pair)] +
           (block.first + row) * plan_.mask.query_step;
  }

  const AttentionPlan& plan_;
  AttentionOperands<T> at_;
  T* keys_;  // the panels of the transposed keys
  bool skips_ = false;
};

}  // namespace plexaura::fast

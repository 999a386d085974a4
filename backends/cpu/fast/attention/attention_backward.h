#pragma once

#include <utility>

#include "backends/cpu/fast/attention/attention_blocks.h"

namespace plexaura::fast {

// Computes the gradients of an attention. Those of keys and values are sums over queries. The queries of a pair are
// divided into chunks, which threads add up separately, and whose sums are added in order. The number of chunks depends
// only on the shape, so that the results do too.
template <class T>
class AttentionBackward {
 public:
  AttentionBackward(AttentionPlan plan, double seconds)
      : plan_(std::move(plan)),
        chunks_(chunks_of(plan_)),
        shares_(costs(), seconds),
        scratch_(Share(*this, {}, {}, nullptr).scratch_elements()) {}

  std::size_t workspace() const {
    const std::int64_t sums = plan_.shape.pairs * (chunks_ - 1) * (key_elements() + value_elements());
    return static_cast<std::size_t>(shares_.count() * scratch_ + sums) * sizeof(T);
  }

  void run(const Binding& at) const {
    const AttentionOperands<T> operands(plan_.region, at);
    const Results results = results_at(at);
    shares_.run([&](std::int64_t share, std::int64_t begin, std::int64_t end) {
      Share(*this, operands, results, elements<T>(at.workspace) + share * scratch_).run(begin, end);
    });
    add_chunks(results.key, key_elements(), &Results::key_sums, results);
    add_chunks(results.value, value_elements(), &Results::value_sums, results);
  }

  // Returns the number of chunks of each pair. Their sums need no more memory than half of the scores.
  static std::int64_t chunks_of(const AttentionPlan& plan) {
    constexpr std::int64_t fewest_units = 8;
    const AttentionShape& shape = plan.shape;
    const std::int64_t wanted = (fewest_units + shape.pairs - 1) / shape.pairs;
    const std::int64_t affordable = 1 + shape.queries / (2 * (shape.features + shape.values));
    return std::min({wanted, affordable, plan.blocks()});
  }

 private:
  // The gradients; null if not wanted. The sums of a pair's first chunk are made in place of the gradient, and those of the
  // others follow each other in the workspace.
  struct Results {
    T* query = nullptr;
    T* key = nullptr;
    T* value = nullptr;
    T* key_sums = nullptr;
    T* value_sums = nullptr;
  };

  std::int64_t key_elements() const { return plan_.shape.keys * plan_.shape.features; }
  std::int64_t value_elements() const { return plan_.shape.keys * plan_.shape.values; }
  std::int64_t first_block(std::int64_t chunk) const { return plan_.blocks() * chunk / chunks_; }

  // A unit is a chunk.
  std::vector<double> costs() const {
    std::vector<double> costs;
    for (std::int64_t unit = 0; unit < plan_.shape.pairs * chunks_; ++unit) {
      costs.push_back(0);
      const std::int64_t chunk = unit % chunks_;
      for (std::int64_t block = first_block(chunk); block < first_block(chunk + 1); ++block)
        costs.back() += static_cast<double>(plan_.keys_of_block(block));
    }
    return costs;
  }

  Results results_at(const Binding& at) const {
    std::size_t output = 0;
    const auto next = [&](bool exists) { return exists ? elements<T>(at.outputs[output++]) : nullptr; };
    Results results;
    results.query = next(plan_.region.query_grad);
    results.key = next(plan_.region.key_grad);
    results.value = next(plan_.region.value_grad);
    results.key_sums = elements<T>(at.workspace) + shares_.count() * scratch_;
    results.value_sums = results.key_sums + plan_.shape.pairs * (chunks_ - 1) * key_elements();
    return results;
  }

  // Returns where a chunk adds up its part of a gradient of `count` elements for each pair.
  T* sum_of(T* gradient, T* sums, std::int64_t count, std::int64_t pair, std::int64_t chunk) const {
    if (gradient == nullptr) return nullptr;
    return chunk == 0 ? gradient + pair * count : sums + (pair * (chunks_ - 1) + chunk - 1) * count;
  }

  void add_chunks(T* gradient, std::int64_t count, T* Results::*sums, const Results& results) const {
    if (gradient == nullptr || chunks_ == 1) return;
    constexpr double nanoseconds_per_element = 0.3;
    for (std::int64_t pair = 0; pair < plan_.shape.pairs; ++pair)
      parallel_pieces(count, nanoseconds_per_element * static_cast<double>(chunks_), panel_lanes<T>,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t chunk = 1; chunk < chunks_; ++chunk)
                          accumulate(sum_of(gradient, results.*sums, count, pair, chunk) + begin, end - begin,
                                     gradient + pair * count + begin);
                      });
  }

  class Share {
   public:
    Share(const AttentionBackward& kernel, const AttentionOperands<T>& at, const Results& results, T* scratch)
        : kernel_(kernel),
          shape_(kernel.plan_.shape),
          at_(at),
          results_(results),
          pieces_(scratch),
          weights_of_(kernel.plan_, at, pieces_),
          keys_(pieces_.take(shape_.keys * in_panels<T>(shape_.features))),
          values_(pieces_.take(in_panels<T>(shape_.keys) * shape_.values)),
          queries_(pieces_.take(kernel.plan_.block_queries() * in_panels<T>(shape_.features))),
          grads_(pieces_.take(kernel.plan_.block_queries() * in_panels<T>(shape_.values))),
          weights_(pieces_.take(kernel.plan_.block_queries() * step())),
          weights_grad_(pieces_.take(kernel.plan_.block_queries() * step())) {}

    std::int64_t scratch_elements() const { return pieces_.taken(); }

    void run(std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t pair = unit / kernel_.chunks_, chunk = unit % kernel_.chunks_;
        if (unit == begin || chunk == 0) enter(pair);
        start_sums(pair, chunk);
        for (std::int64_t block = kernel_.first_block(chunk); block < kernel_.first_block(chunk + 1); ++block)
          compute(weights_of_.block(pair, block));
      }
    }

   private:
    std::int64_t step() const { return AttentionWeights<T>::row_step(shape_); }

    void enter(std::int64_t pair) {
      pack_columns(at_.key + pair * kernel_.key_elements(), shape_.keys, shape_.features, keys_);
      pack_transposed(at_.value + pair * kernel_.value_elements(), shape_.keys, shape_.values, values_);
      weights_of_.enter(pair);
    }

    void start_sums(std::int64_t pair, std::int64_t chunk) {
      key_sum_ = kernel_.sum_of(results_.key, results_.key_sums, kernel_.key_elements(), pair, chunk);
      value_sum_ = kernel_.sum_of(results_.value, results_.value_sums, kernel_.value_elements(), pair, chunk);
      if (key_sum_ != nullptr) std::fill_n(key_sum_, kernel_.key_elements(), T(0));
      if (value_sum_ != nullptr) std::fill_n(value_sum_, kernel_.value_elements(), T(0));
    }

    void compute(const QueryBlock& block) {
      weights_of_.compute(block, weights_);
      if (value_sum_ != nullptr) add_value_grad(block);
      compute_scores_grad(block);
      const std::int64_t first = block.pair * shape_.queries + block.first;
      if (results_.query != nullptr)
        multiply_panels({weights_grad_, step(), 1},
                        {keys_, shape_.keys * panel_lanes<T>, block.keys, shape_.features},
                        {results_.query + first * shape_.features, shape_.features, block.count});
      if (key_sum_ == nullptr) return;
      pack_columns(at_.query + first * shape_.features, block.count, shape_.features, queries_);
      add_transposed_product(weights_grad_, queries_, shape_.features, block, key_sum_);
    }

    void add_value_grad(const QueryBlock& block) {
      const T* weights = weights_;
      if (weights_of_.drops()) {
        weights_of_.drop_rows(block, weights_, weights_grad_);
        weights = weights_grad_;
      }
      pack_columns(grad_of(block), block.count, shape_.values, grads_);
      add_transposed_product(weights, grads_, shape_.values, block, value_sum_);
    }

    // Overwrites weights_grad_ with the gradient of the scores.
    void compute_scores_grad(const QueryBlock& block) {
      multiply_panels({grad_of(block), shape_.values, 1},
                      {values_, panel_lanes<T> * shape_.values, shape_.values, block.keys},
                      {weights_grad_, step(), block.count, false, true});
      if (weights_of_.drops()) weights_of_.drop_rows(block, weights_grad_, weights_grad_);
      for (std::int64_t row = 0; row < block.count; ++row) {
        T* grad = weights_grad_ + row * step();
        softmax_grad_rows(weights_ + row * step(), grad, 1, block.keys, grad);
        weights_of_.mask_row(block, row, T(0), grad);
      }
    }

    const T* grad_of(const QueryBlock& block) const {
      return at_.grad + (block.pair * shape_.queries + block.first) * shape_.values;
    }

    // Adds the product of the transpose of a [queries, keys] and b [queries, columns], which is in panels, to `sum`.
    void add_transposed_product(const T* a, const T* b, std::int64_t columns, const QueryBlock& block,
                                T* sum) const {
      multiply_panels({a, 1, step()}, {b, block.count * panel_lanes<T>, block.count, columns},
                      {sum, columns, block.keys, true});
    }

    const AttentionBackward& kernel_;
    const AttentionShape& shape_;
    AttentionOperands<T> at_;
    Results results_;
    ScratchPieces<T> pieces_;
    AttentionWeights<T> weights_of_;
    T* keys_;     // panels of the keys
    T* values_;   // panels of the transposed values
    T* queries_;  // panels of the queries of a block
    T* grads_;    // panels of the gradients of the results of a block
    T* weights_;  // of a block
    T* weights_grad_;
    T* key_sum_ = nullptr;    // where the gradient of the keys is added up
    T* value_sum_ = nullptr;  // where the gradient of the values is added up
  };

  AttentionPlan plan_;
  std::int64_t chunks_;
  AttentionShares shares_;
  std::int64_t scratch_;  // elements of a thread's memory
};

}  // namespace plexaura::fast

#pragma once

#include <utility>

#include "backends/cpu/fast/attention/attention_blocks.h"

namespace plexaura::fast {

// Computes the result of an attention. Each thread computes blocks of queries.
template <class T>
class AttentionForward {
 public:
  AttentionForward(AttentionPlan plan, double seconds)
      : plan_(std::move(plan)),
        shares_(costs(), seconds),
        scratch_(Share(plan_, {}, nullptr, nullptr).scratch_elements()) {}

  std::size_t workspace() const { return static_cast<std::size_t>(shares_.count() * scratch_) * sizeof(T); }

  void run(const Binding& at) const {
    const AttentionOperands<T> operands(plan_.region, at);
    shares_.run([&](std::int64_t share, std::int64_t begin, std::int64_t end) {
      Share(plan_, operands, elements<T>(at.workspace) + share * scratch_, elements<T>(at.outputs[0]))
          .run(begin, end);
    });
  }

 private:
  // A unit is a block of queries.
  std::vector<double> costs() const {
    std::vector<double> costs;
    for (std::int64_t pair = 0; pair < plan_.shape.pairs; ++pair)
      for (std::int64_t block = 0; block < plan_.blocks(); ++block)
        costs.push_back(static_cast<double>(plan_.keys_of_block(block)));
    return costs;
  }

  class Share {
   public:
    Share(const AttentionPlan& plan, const AttentionOperands<T>& at, T* scratch, T* result)
        : plan_(plan),
          at_(at),
          result_(result),
          pieces_(scratch),
          weights_of_(plan, at, pieces_),
          values_(pieces_.take(plan.shape.keys * in_panels<T>(plan.shape.values))),
          weights_(pieces_.take(plan.block_queries() * AttentionWeights<T>::row_step(plan.shape))) {}

    std::int64_t scratch_elements() const { return pieces_.taken(); }

    void run(std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t pair = unit / plan_.blocks();
        if (unit == begin || unit % plan_.blocks() == 0) enter(pair);
        compute(weights_of_.block(pair, unit % plan_.blocks()));
      }
    }

   private:
    void enter(std::int64_t pair) {
      const auto& [pairs, queries, keys, features, values] = plan_.shape;
      pack_columns(at_.value + pair * keys * values, keys, values, values_);
      weights_of_.enter(pair);
    }

    void compute(const QueryBlock& block) {
      const AttentionShape& shape = plan_.shape;
      weights_of_.compute(block, weights_);
      if (weights_of_.drops()) weights_of_.drop_rows(block, weights_, weights_);
      T* result = result_ + (block.pair * shape.queries + block.first) * shape.values;
      multiply_panels({weights_, AttentionWeights<T>::row_step(shape), 1},
                      {values_, shape.keys * panel_lanes<T>, block.keys, shape.values},
                      {result, shape.values, block.count});
    }

    const AttentionPlan& plan_;
    AttentionOperands<T> at_;
    T* result_;
    ScratchPieces<T> pieces_;
    AttentionWeights<T> weights_of_;
    T* values_;   // panels of the values
    T* weights_;  // of a block
  };

  AttentionPlan plan_;
  AttentionShares shares_;
  std::int64_t scratch_;  // elements of a thread's memory
};

}  // namespace plexaura::fast

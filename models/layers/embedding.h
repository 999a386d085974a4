#pragma once

#include <optional>

#include "models/layers/layer.h"

namespace plexaura::layers {

struct EmbeddingOptions {
  // The index that stands for no word: it fills short sentences up. Its row starts as zeros and gets no
  // gradient. A negative index counts from the end.
  std::optional<std::int64_t> padding = {};
  Initialiser weight = Initialiser::normal(1);
};

// Returns a row of a table for each index (the op embedding): int64 [...] from 0 to words - 1 -> [...,
// width]. Parameters: weight [words, width].
class Embedding final : public Layer {
 public:
  // Throws UserError for a padding that is not the index of a row.
  Embedding(std::int64_t words, std::int64_t width, EmbeddingOptions options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }

  // Returns the weight, for a Linear that is tied to it.
  Parameter& weight() const { return *weight_; }

 private:
  std::optional<std::int64_t> padding_;
  std::unique_ptr<Parameter> weight_;
};

// Adds learned values to each position of a sequence: x [N, steps, width] -> [N, steps, width].
// Parameters: weight [steps, width], which starts normally with the deviation 0.02.
class Positions final : public Layer {
 public:
  Positions(std::int64_t steps, std::int64_t width) : weight_({steps, width}, Initialiser::normal(0.02)) {}

  void members(MemberVisitor& visit) override;
  // Adds the values of the first positions if the sequence is shorter than `steps`.
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t samples, std::int64_t positions) const override;

  // Adds the values of one position, int64 [], to x [N, 1, width]. Throws UserError for another shape of x.
  Node next(Operand x, Operand position) const;

 private:
  Parameter weight_;
};

}  // namespace plexaura::layers

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/vm/vm.h"
#include "models/predictor.h"

namespace plexaura {

// Computes a language model's logits for the token after a text that grows. As long as the text fits into the model's window,
// each token is read once, if the model supports that (Model::incremental()). For a longer text each call reads the whole
// window of its last tokens, because all of them have moved to other positions. A long first text before few calls is read in
// windows, too, if these take less time.
class NextTokenLogits {
 public:
  // Copies the weights to a store that also has the buffers of the incremental model. The caller may destroy its own store
  // then, so that the weights are in memory once. The model must outlive this object.
  // For `strict` see CompileOptions. `calls` is the number of calls that will be made.
  NextTokenLogits(Model& model, const ParameterStore& weights, Backend& backend, bool strict,
                  std::int64_t calls);

  // `tokens` are those of the last call, and at least one more after them. Otherwise throws InternalError. Returns a
  // logit for each token of the vocabulary.
  std::vector<double> operator()(std::span<const std::int32_t> tokens);

  // Returns how many positions the calls have computed so far.
  std::int64_t computed_positions() const { return computed_positions_; }
  // Returns the ops that the host has computed so far: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;

 private:
  void compile_incremental();
  std::vector<double> read_next(std::int32_t token);
  std::vector<double> read_window(std::span<const std::int32_t> tokens);

  std::int64_t window_;
  std::unique_ptr<layers::IncrementalLayer> incremental_;  // null if whole windows are read
  ParameterStore store_;
  Backend& backend_;
  std::unique_ptr<VM> vm_;  // VM of the incremental model; null until it is first used
  Predictor whole_;
  bool strict_;
  std::int64_t calls_;
  std::int64_t seen_tokens_ = 0;     // how many tokens the last call had
  std::int64_t read_positions_ = 0;  // how many tokens of the text the incremental model has read
  std::int64_t computed_positions_ = 0;
};

}  // namespace plexaura

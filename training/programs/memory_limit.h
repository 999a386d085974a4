#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/params/placement.h"
#include "training/data/sampler.h"

namespace plexaura {

// A program that needs more memory than TrainerOptions::memory allows. All numbers are bytes.
struct MemoryShortage {
  std::string program;        // such as "the update"
  std::int64_t memory = 0;    // TrainerOptions::memory
  std::size_t least = 0;      // the least that a step with this program needs, as far as was found
  std::size_t others = 0;     // the part of `least` that is not the program's arena
  bool recomputes = false;    // true: `least` was reached by computing values again
  std::string remedies = {};  // what helps apart from more memory, such as ", or lower training.batch_size"
};

// Returns the text about a shortage that follows the name of the option: "is 1000 bytes, and ...".
std::string text_of(const MemoryShortage& shortage);

// Thrown if a step cannot be made to need at most TrainerOptions::memory bytes.
class StepMemoryError : public UserError {
 public:
  explicit StepMemoryError(MemoryShortage shortage);
  const MemoryShortage& shortage() const { return shortage_; }

 private:
  MemoryShortage shortage_;
};

// Returns the bytes of parameters, gradients and optimizer state, which do not depend on the batch. `adds` is
// true if a step has several micro-batches, which need a second arena of gradients.
std::size_t parameter_bytes(const Placement& placement, std::int64_t states, bool adds);

// Returns the bytes of the inputs of a model: two slots, one of which may be written while the other is read.
std::size_t input_bytes(const Graph& model);

// Returns the bytes of `memory` that are left for intermediate values; 0 if `others` need more.
std::size_t arena_limit(std::int64_t memory, std::size_t others);

// Returns what reduces the arena of a program for `samples` samples at a time, for MemoryShortage::remedies.
// Empty if `others` alone exceed `memory`.
std::string remedies_for(std::int64_t samples, std::int64_t memory, std::size_t others);

}  // namespace plexaura

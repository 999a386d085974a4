#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/busy.h"
#include "core/base/export.h"

namespace plexaura {

// A part of a store's parameters, which one optimizer trains.
struct TrainedPart {
  std::string name;                   // the optimizer and its parameters, such as "adam of d.*"
  std::set<std::string> parameters;   // no two parts have one in common
  std::int64_t seed = 0;              // of the optimizer's random numbers
  std::int64_t updates = 0;           // that the optimizer has made
  std::int64_t states = 0;            // numbers that the optimizer keeps for each element of its parameters
  bool has_ranks = false;             // the optimizer makes its steps with other ranks
  std::vector<double> schedule = {};  // the state of its learning-rate schedule, which a checkpoint keeps
};

// The parts of one store. A part ends with the last pointer to it, or when another one takes its place. Not
// thread-safe.
class PLEXAURA_API TrainedParts {
 public:
  using Part = std::shared_ptr<TrainedPart>;

  // Returns the parts, ordered by their names.
  std::vector<Part> parts() const;
  // Returns the names of all parts, such as "adam of d.*; sgd of g.*".
  std::string names() const;

  // Returns the parts that remain if these parameters become a part: those that share none of their `trainable`
  // parameters with it. A part that shares all of them does not remain. Throws UserError for a part that shares
  // some of them.
  std::vector<Part> beside(const std::set<std::string>& parameters,
                           const std::set<std::string>& trainable) const;
  // Adds a part, and ends all parts that are not in `remaining`.
  Part add(TrainedPart part, const std::vector<Part>& remaining);
  bool has(const Part& part) const;
  // Returns true if an optimizer keeps the state with this index for the trainable parameter. Without parts, one
  // optimizer trains all parameters, so that each has all states of the store.
  bool have_state(std::int64_t index, std::string_view parameter) const;
  // Returns the largest number of states of any part.
  std::int64_t states() const;
  // Ends all parts.
  void clear() { parts_.clear(); }

  // The number of updates that all optimizers together have made, also those whose parts have ended. Each Optimizer
  // counts it, and load_checkpoint() sets it.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  // Set while an Optimizer of the store is in a call: another thread may not be in a call of any Optimizer of the store.
  BusyFlag& busy() { return busy_; }

 private:
  std::vector<std::weak_ptr<TrainedPart>> parts_;
  std::int64_t updates_ = 0;
  BusyFlag busy_;
};

}  // namespace plexaura

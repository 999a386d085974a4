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
  std::string name;  // the optimizer and the patterns of its parameters, such as "adam of d.*"
  std::set<std::string> parameters;  // names of the parameters; no parameter belongs to two parts
  std::int64_t seed = 0;             // seed of the optimizer's random numbers
  std::int64_t updates = 0;          // number of updates that the optimizer has made
  std::int64_t states = 0;           // numbers that the optimizer keeps for each element of a parameter
  bool has_ranks = false;            // true if the optimizer makes its steps together with other ranks
  // State of the optimizer's learning-rate schedule, which a checkpoint keeps.
  std::vector<double> schedule = {};
};

// The parts of one store. Each part has a pointer that its optimizer holds. A part ends when the last pointer
// to it is destroyed, or when another part replaces it. Not thread-safe.
class PLEXAURA_API TrainedParts {
 public:
  using Part = std::shared_ptr<TrainedPart>;

  // Returns the parts, ordered by their names.
  std::vector<Part> parts() const;
  // Returns the names of all parts, such as "adam of d.*; sgd of g.*".
  std::string names() const;

  // Returns the parts that remain if `parameters` become a part: a part remains if it has trainable parameters and
  // none of them is among `parameters`, and does not remain if all are. Throws UserError if only some of them
  // are. `trainable` has the names of all trainable parameters of the store.
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

  // The number of updates that all optimizers together have made, including optimizers whose parts have
  // ended. Each Optimizer counts it; load_checkpoint() sets it, and ParameterStore::reset_states() sets it to 0.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  // Marks a call of an Optimizer of the store. While it is set, another thread may not call any Optimizer of
  // the store.
  BusyFlag& busy() { return busy_; }

 private:
  std::vector<std::weak_ptr<TrainedPart>> parts_;
  std::int64_t updates_ = 0;
  BusyFlag busy_;
};

}  // namespace plexaura

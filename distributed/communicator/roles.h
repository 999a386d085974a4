#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// The roles of the ranks: training, serving, and spare. All ranks agree on what the run is and how it ends.
// The ranks that train share the data, and measure the loss together. The strategy decides over which of them
// gradients are summed. A strategy in which some ranks serve addresses ranks by their number among all ranks.
// A spare takes part only in calls of all ranks, until it replaces a rank that trained and has died.
class Roles {
 public:
  // Collective over all ranks; `all` must outlive this object. This rank serves if its strategy has a Server;
  // `strategy` is null if it has none. `is_spare` is true if this rank and all ranks after it are spares,
  // which have no strategy. If there are spares, no rank serves. Throws UserError on all ranks if none
  // trains.
  Roles(Communicator& all, Strategy* strategy, bool is_spare = false);

  bool serves() const { return training_ == nullptr && !is_spare_; }
  bool is_spare() const { return is_spare_; }
  // Returns the number of this rank among all ranks.
  int number() const { return all_.rank(); }
  // Returns the number of ranks that train.
  int trainers() const { return trainers_; }
  // Returns the communicator of the ranks that train, in the order of ranks. If all ranks train, it is the
  // communicator of all ranks. Must not be called on a rank that serves or is a spare.
  Communicator& training() const { return *training_; }
  // Returns the communicator of the ranks that train, followed by the spares. Must not be called on a rank
  // that serves.
  Communicator& candidates() const { return has_spares_ ? all_ : *training_; }
  Communicator& all() const { return all_; }
  // Returns the numbers, among all ranks, of the ranks that serve.
  const std::vector<int>& serving() const { return serving_; }

  // Called on the ranks that train, after all comparisons and before training. Sends the placement and the
  // weights of the lowest rank that trains to the ranks that serve.
  void share_parameters(const ParameterStore& store) const;

  // Does the work of a rank that serves: receives the placement and the weights for a store with the run's
  // parameters, calls begin() of the strategy, and serves. Waits up to an hour for the other ranks to compile
  // their programs.
  void serve(Strategy& strategy, ParameterStore& store, Backend& backend, std::int64_t bucket_bytes) const;

  // Called on all ranks at the end of their work. A rank that serves returns the exit status of the lowest
  // rank that trains. All other ranks return `mine`.
  int share_status(int mine) const;

 private:
  void report_serving(std::string_view text, std::string_view what) const;
  std::string hear(std::string_view what) const;

  Communicator& all_;
  bool is_spare_;
  bool has_spares_ = false;
  std::vector<int> serving_;
  int trainers_ = 0;
  int first_trainer_ = 0;
  std::unique_ptr<Communicator> split_;
  Communicator* training_ = nullptr;
};

}  // namespace plexaura

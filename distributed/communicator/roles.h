#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Three groups of ranks. All ranks agree on what the run is and how it ends. Those that train have a share of the
// data, and measure loss together. Over which of them gradients are summed is the strategy's own affair. A
// strategy that lets some ranks serve names its peers by their place among all ranks. A spare is in the first group
// alone, until it takes the place of a rank that trains and has died.
class Roles {
 public:
  // This rank serves if its strategy (null: none) has a Server. Collective over all ranks, whose communicator must
  // outlive this. UserError on all of them where none trains. `is_spare`: this rank has no strategy, and all after it
  // are spares, too; nobody serves where there are any.
  Roles(Communicator& all, Strategy* strategy, bool is_spare = false);

  bool serves() const { return training_ == nullptr && !is_spare_; }
  bool is_spare() const { return is_spare_; }
  // Of this rank among all.
  int number() const { return all_.rank(); }
  // How many ranks train.
  int trainers() const { return trainers_; }
  // Those that train, in the order of ranks; the communicator of all where all do. Not on a rank that serves, nor on a
  // spare.
  Communicator& training() const { return *training_; }
  // Those that train, and behind them the spares. Not on a rank that serves.
  Communicator& candidates() const { return has_spares_ ? all_ : *training_; }
  Communicator& all() const { return all_; }
  // Those that serve, among all.
  const std::vector<int>& serving() const { return serving_; }

  // On ranks that train, when all is compared and training is about to begin: ranks that serve take the
  // placement and the weights of the lowest of them, wherever these are from.
  void share_parameters(const ParameterStore& store) const;

  // The work of a rank that serves: takes placement and weights for a store of the run's parameters, then begins
  // and serves. Waits up to an hour for the programs of the others.
  void serve(Strategy& strategy, ParameterStore& store, Backend& backend, std::int64_t bucket_bytes) const;

  // On all ranks, at the end of their work: the exit status of the lowest rank that trains.
  int share_status(int mine) const;

 private:
  void tell_serving(std::string_view text, std::string_view what) const;
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

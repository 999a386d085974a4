#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/exchange/dealer.h"
#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"
#include "distributed/servers/ranks/parameter_client.h"
#include "distributed/servers/ranks/shared_weights.h"

namespace plexaura {

// Several ranks that are one client: they make each step together and sum their gradients. The lowest rank has the
// ParameterClient. This rank draws one part of the data for each rank at once. After a step in which it gets weights it
// sends these to the other ranks, and at the end of an epoch it also sends them its state of the optimizer. So all ranks
// of the group have the same weights and the same state, even if their processors round differently.
//
// A rank that fails makes no more steps, but still draws. The others notice this before their next step. From then on each rank makes
// its steps alone, and the run ends at the next call of all ranks.
class ClientGroup final : public Dealer, public GradientSum, public WeightExchange, public KeptState {
 public:
  // Collective over all ranks that train. Each `size` consecutive ranks are a group. `client` is given on the
  // lowest rank of a group, and null on the others; it must outlive this object. `may_wait` is true if the
  // server may delay an answer until other clients have caught up.
  ClientGroup(std::unique_ptr<Communicator> trainers, int size, ParameterClient* client, bool may_wait);

  // Throws UserError for gradients and weights of a type other than float64 and float32. On the lowest rank of a
  // group, ParameterClient::begin() is called before.
  void begin(WeightsImmigration& border);
  // Draws a step for the group. In a resumed run, throws UserError on all ranks that train if the ranks of a
  // group may have had different states of the optimizer. Throws DeviceError if the ranks of the group make
  // different calls although none has failed.
  Draw draw(const DealtSteps& steps) override;
  void stop() override { wants_stop_ = true; }
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  // Replaces the gradients of a bucket by their mean over the samples of all ranks of the group. Leaves the tail
  // unchanged.
  UpdateAnswer before_update(std::size_t bucket) override;
  // See ParameterClient::after_update() and show_weights().
  void after_update() override;
  void show_weights() override;
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;

 private:
  // The ranks that are about to make each possible next call, the sum of their samples, and the ranks that want a stop.
  struct Meeting {
    double draws = 0;
    double steps = 0;
    double rests = 0;
    double samples = 0;
    double stops = 0;
  };

  void check_beginning(const DealtSteps& steps);
  bool meet(Meeting& meeting);
  DealtSteps blocks_of(DealtSteps steps) const;
  Draw end_deal(const DealtSteps& steps);
  template <class T>
  void share(T& value, double patience_seconds, std::string_view what);
  void share_weights(bool are_new, double patience_seconds, std::string_view what);
  void share_state();
  std::size_t averaged(std::size_t bucket) const;

  std::unique_ptr<Communicator> trainers_;
  std::unique_ptr<Communicator> ranks_;  // the ranks of the group
  ParameterClient* client_;
  double patience_seconds_;  // seconds to wait for data that the lowest rank gets from a server
  WeightsImmigration* border_ = nullptr;
  std::optional<SharedWeights> weights_;
  std::vector<Event*> final_;  // event of each bucket, which passes when its gradients are final
  double weight_ = 1;          // this rank's share of the samples of the current step
  bool wants_stop_ = false;    // true: this rank demands that no further step is dealt
  bool has_failed_ = false;    // true: a rank of the group has failed
  bool has_rested_ = false;    // true: the epoch has ended since that failure
  bool has_drawn_ = false;
  std::int64_t saved_size_ = 1;  // number of ranks in a group of the run that wrote the checkpoint
};

}  // namespace plexaura

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

// Several ranks that are one client: each of its steps is one of all of them, which sum their gradients. The lowest has
// the ParameterClient, draws as many parts at once as there are ranks, one for each, and gives the others the weights
// that it gets, behind the same step, and its state of the optimizer when all rest. So all of them have the same weights
// and the same state, even where their processors round differently in between.
//
// A rank that fails makes no more steps, but draws. The others hear of it when they are about to make one. From then on
// each makes its steps by itself: the run ends when all meet.
class ClientGroup final : public Dealer, public GradientSum, public WeightExchange, public KeptState {
 public:
  // Collective over all ranks that train, of which each `size` that follow each other are a group. `client`: of the lowest
  // of the group, outlives this; null on the others. `may_wait`: a push may be answered when other clients have come as far.
  ClientGroup(std::unique_ptr<Communicator> trainers, int size, ParameterClient* client, bool may_wait);

  // Throws UserError for gradients of a type other than float64 and float32, as ParameterClient::begin() for weights.
  void begin(WeightsImmigration& border);
  // In a run that goes on, throws UserError on all ranks that train where those of a group may have had other states of
  // the optimizer. Throws DeviceError where the ranks of the group did not do the same though none had failed.
  Draw draw(const DealtSteps& steps) override;
  void stop() override { wants_stop_ = true; }
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  // Makes what a bucket holds the mean over the samples of all ranks, but for the tail.
  UpdateAnswer before_update(std::size_t bucket) override;
  // As those of ParameterClient.
  void after_update() override;
  void show_weights() override;
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;

 private:
  // What ranks are about to do: how many of them, and their samples.
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
  std::unique_ptr<Communicator> ranks_;  // of the group
  ParameterClient* client_;
  double patience_seconds_;  // for what the lowest rank hears of a server
  WeightsImmigration* border_ = nullptr;
  std::optional<SharedWeights> weights_;
  std::vector<Event*> final_;  // of each bucket
  double weight_ = 1;          // of this rank in the step under way: its share of the samples
  bool wants_stop_ = false;    // this rank, of the deal
  bool has_failed_ = false;    // a rank of the group
  bool has_rested_ = false;    // since then
  bool has_drawn_ = false;
  std::int64_t saved_size_ = 1;  // of the groups that a checkpoint is of
};

}  // namespace plexaura

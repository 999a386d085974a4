#include "distributed/sums/sum_algorithm.h"

#include "distributed/failure/rank_wait.h"

namespace plexaura {

void SumMeans::wait_for(Inbox& inbox, std::size_t count, const CallSignature& call) const {
  RankWait wait(alarm, {call, deadline_seconds, topology.numbers()});
  for (std::size_t come = 1; come <= count; ++come) {
    while (!inbox.have_come(come)) wait.pause();
    wait.progressed();
  }
}

void SumMeans::wait_for(Outbox& outbox, const CallSignature& call) const {
  RankWait wait(alarm, {call, deadline_seconds, topology.numbers()});
  while (!outbox.all_left()) wait.pause();
}

SumAlgorithm::~SumAlgorithm() = default;

void SumAlgorithm::bring(const CallSignature&, const std::byte*) {}

}  // namespace plexaura

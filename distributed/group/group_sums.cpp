// How a GroupCommunicator sums what the ranks bring with a call.

#include "distributed/group/group_communicator.h"
#include "distributed/group/reduce.h"
#include "distributed/group/staged_sum.h"

namespace plexaura {

// Over messages: along the chain of ranks, which brings all sums to all.
class GroupCommunicator::MessageSum final : public SumAlgorithm {
 public:
  explicit MessageSum(GroupCommunicator& ranks) : ranks_(ranks) {}

  void reduce_scatter(const CallSignature& call, std::byte* data) override { sum(call, data); }
  void sum(const CallSignature& call, std::byte* data) override {
    ranks_.sum_over_chain(*ranks_.rank_chain_, call, std::span(&data, 1));
  }
  void all_gather(const CallSignature& call, std::byte* data) override {
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const Part part = part_of(call.count, call.dtype, rank, ranks_.size());
      ranks_.spread(data + bytes_of(call.dtype, part.first), bytes_of(call.dtype, part.count), rank, call);
    }
  }

 private:
  GroupCommunicator& ranks_;
};

void GroupCommunicator::choose_algorithm() {
  SharedWindow control = allocate_shared(ShmRendezvous::bytes_per_rank() + StagedSum::staging_bytes,
                                         "the rendezvous of the node");
  if (control.shared()) {
    control_.emplace(std::move(control));
    rendezvous_ = std::make_unique<ShmRendezvous>(*control_, topology_, *alarm_, options_.deadline_seconds);
  }
  if (rendezvous_ && topology_.nodes() == 1)
    algorithm_ = std::make_unique<StagedSum>(*control_, *rendezvous_);
  else
    algorithm_ = std::make_unique<MessageSum>(*this);
}

void GroupCommunicator::sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) {
  refuse_in_phase(what);
  check_summable(dtype);
  if (size() == 1) return;
  attempt([&] {
    const CallSignature call = announce(Call::sum, what, dtype, count);
    meet(call);
    algorithm_->sum(call, data);
  });
}

void GroupCommunicator::reduce_scatter(DType dtype, std::byte* data, std::int64_t count,
                                       std::string_view what) {
  refuse_in_phase(what);
  check_summable(dtype);
  if (size() == 1) return;
  attempt([&] {
    const CallSignature call = announce(Call::reduce_scatter, what, dtype, count);
    meet(call);
    algorithm_->reduce_scatter(call, data);
  });
}

void GroupCommunicator::all_gather(DType dtype, std::byte* data, std::int64_t count, std::string_view what) {
  refuse_in_phase(what);
  if (size() == 1) return;
  attempt([&] {
    const CallSignature call = announce(Call::all_gather, what, dtype, count);
    meet(call);
    algorithm_->all_gather(call, data);
  });
}

void GroupCommunicator::sum_over_chain(ChainSum& chain, const CallSignature& call,
                                       std::span<std::byte* const> arrays) {
  chain.run(call, arrays, [this] {
    if (rendezvous_) rendezvous_->beat();
  });
}

}  // namespace plexaura

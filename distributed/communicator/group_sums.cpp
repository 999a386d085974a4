// The sums of a GroupCommunicator.

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "distributed/communicator/group_communicator.h"
#include "distributed/node/reduce.h"
#include "distributed/sums/sum_algorithms.h"
#include "distributed/sums/window_sum.h"

namespace plexaura {

void GroupCommunicator::share_control_memory() {
  SharedWindow control = allocate_shared(ShmRendezvous::bytes_per_rank() + WindowSum::bytes_per_rank,
                                         "the rendezvous of the node");
  if (!control.shared()) return;
  control_.emplace(std::move(control));
  rendezvous_ = std::make_unique<ShmRendezvous>(*control_, topology_, *alarm_, options_.deadline_seconds);
}

SumMeans GroupCommunicator::sum_means(PaceChoice& paces) {
  return {*transport_,
          topology_,
          *alarm_,
          options_.deadline_seconds,
          paces,
          control_ ? &*control_ : nullptr,
          rendezvous_.get(),
          shards_};
}

void GroupCommunicator::bring_shards(int shards) {
  const std::vector<std::string> fit = sum_algorithms_of_shards();
  if (std::ranges::find(fit, options_.algorithm) == fit.end())
    throw UserError(
        fmt::format("distributed.algorithm is '{}', which cannot add shards of ranks that are lost; "
                    "choose one of {}",
                    options_.algorithm, fmt::join(fit, ", ")));
  shards_ = divide_shards(shards, size());
  choose_algorithm(options_.algorithm);
}

void GroupCommunicator::choose_algorithm(std::string_view name) {
  std::unique_ptr<SumAlgorithm> chosen;
  std::exception_ptr error;
  try {
    chosen = make_sum_algorithm(name, sum_means(paces_[std::string(name)]));
  } catch (const UserError&) {
    error = std::current_exception();
  }
  agree_on_error(*this, error, fmt::format("the choice of the algorithm '{}' for sums", name));
  options_.algorithm = name;
  algorithm_ = std::move(chosen);
}

// Sets the pace of the call on all ranks to the one that rank 0 has chosen.
void GroupCommunicator::meet_for_sum(CallSignature& call) {
  if (rank() == 0) call.pace = paces_.find(options_.algorithm)->second.next(call);
  call.pace = meet(call);
}

void GroupCommunicator::sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) {
  refuse_in_phase(what);
  check_summable(dtype);
  if (size() == 1) return;
  attempt(what, [&] {
    CallSignature call = announce(Call::sum, what, dtype, count);
    algorithm_->bring(call, data);
    meet_for_sum(call);
    algorithm_->sum(call, data, {});
  });
}

void GroupCommunicator::reduce_scatter(DType dtype, std::byte* data, std::int64_t count,
                                       std::string_view what) {
  refuse_in_phase(what);
  check_summable(dtype);
  if (size() == 1) return;
  attempt(what, [&] {
    CallSignature call = announce(Call::reduce_scatter, what, dtype, count);
    meet_for_sum(call);
    algorithm_->reduce_scatter(call, data);
  });
}

void GroupCommunicator::all_gather(DType dtype, std::byte* data, std::int64_t count, std::string_view what) {
  refuse_in_phase(what);
  if (size() == 1) return;
  attempt(what, [&] {
    CallSignature call = announce(Call::all_gather, what, dtype, count);
    meet_for_sum(call);
    algorithm_->all_gather(call, data);
  });
}

}  // namespace plexaura

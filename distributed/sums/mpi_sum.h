#pragma once

#include "distributed/sums/whole_sum.h"

namespace plexaura {

// `mpi`: MPI_Allreduce of the library, which guarantees no order of additions.
class MpiSum final : public WholeSum {
 public:
  explicit MpiSum(const SumMeans& means) : WholeSum(means), transport_(means.transport) {}

  bool keeps_order() const override { return false; }
  bool is_of_library() const override { return true; }
  void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> /*windows*/) override {
    transport_.all_reduce(call.dtype, data, call.count);
  }

 private:
  Transport& transport_;
};

}  // namespace plexaura

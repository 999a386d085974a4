#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// A sum over ranks that one rank, the root, computes: all others send it their values, and it adds them in
// the order of sum_order.h and broadcasts the sums. The ranks whose values are added are the shards of that
// order. All data passes the root's link, which limits the speed.
class RootSum {
 public:
  // `root_adds` is true if the values of the root are part of the sum. The communicator must outlive this
  // object.
  RootSum(Communicator& communicator, int root, bool root_adds);

  // Collective, in place. `what` names the call in errors.
  void sum(DType dtype, std::span<std::byte> values, std::string_view what);
  // Sums as sum() does, but only the root gets the sums. The values of the other ranks do not change.
  void gather(DType dtype, std::span<std::byte> values, std::string_view what);

 private:
  void send(std::span<const std::byte> values, std::string_view what);
  void add_from_all(DType dtype, std::span<std::byte> values, std::string_view what);

  Communicator& communicator_;
  int root_;
  bool root_adds_;
  // On the root, for one piece of the data: the values of all other ranks, one after the other, and the
  // summands.
  std::vector<std::byte> received_;
  std::vector<Summand> summands_;
};

}  // namespace plexaura

#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// A sum over ranks that one of them, the root, makes: all others send it what they have, and it adds that in the
// order of sum_order.h and broadcasts the sums. The ranks that add are its shards. The root takes in everything, so that its link bounds the speed.
class RootSum {
 public:
  // `root_adds`: whether what the root has counts. The communicator must outlive it.
  RootSum(Communicator& communicator, int root, bool root_adds);

  // Collective, in place. `what` names it.
  void sum(DType dtype, std::span<std::byte> values, std::string_view what);
  // The same, but the root keeps the sums to itself, and the others keep what they have.
  void gather(DType dtype, std::span<std::byte> values, std::string_view what);

 private:
  void send(std::span<const std::byte> values, std::string_view what);
  void add_from_all(DType dtype, std::span<std::byte> values, std::string_view what);

  Communicator& communicator_;
  int root_;
  bool root_adds_;
  // On the root, a piece: of all other ranks, one after the other, and of all that add.
  std::vector<std::byte> received_;
  std::vector<Summand> summands_;
};

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "distributed/group/reduce.h"
#include "distributed/group/shared_window.h"
#include "distributed/group/shm_rendezvous.h"
#include "distributed/group/sum_algorithm.h"

namespace plexaura {

// Where all ranks are on one node: piece by piece through staging areas that they share.
class StagedSum final : public SumAlgorithm {
 public:
  static constexpr std::size_t staging_bytes = std::size_t{1} << 20;

  // The staging areas are the last staging_bytes of the windows. Both must outlive it.
  StagedSum(const SharedWindow& window, ShmRendezvous& rendezvous);

  void reduce_scatter(const CallSignature& call, std::byte* data) override;
  void all_gather(const CallSignature& call, std::byte* data) override;
  void sum(const CallSignature& call, std::byte* data) override;

 private:
  void for_each_piece(const CallSignature& call, const std::function<void(Part)>& work);
  Part part_of_rank(const CallSignature& call, int rank) const;

  int rank_;
  std::vector<std::byte*> staged_;  // of each rank
  std::vector<std::byte*> from_;    // scratch: the same, at some element
  ShmRendezvous& rendezvous_;
};

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "distributed/group/reduce.h"
#include "distributed/sums/sum_algorithm.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// `window`: where all ranks are on one node. Each rank adds its part of what lies in shared memory, in all windows at
// once; other arrays go through staging areas that the ranks share, piece by piece.
class WindowSum final : public SumAlgorithm {
 public:
  static constexpr std::size_t staging_bytes = std::size_t{1} << 20;  // of each rank

  explicit WindowSum(const SumMeans& means);

  bool keeps_order() const override { return true; }
  void reduce_scatter(const CallSignature& call, std::byte* data) override;
  void all_gather(const CallSignature& call, std::byte* data) override;
  void sum(const CallSignature& call, std::byte* data) override;
  void sum_windows(const CallSignature& call, std::span<std::byte* const> windows, int own) override;

 private:
  void for_each_piece(const CallSignature& call, const std::function<void(Part)>& work);
  Part part_of_rank(const CallSignature& call, int rank) const;
  void add_own_part(DType dtype, std::int64_t count, std::span<std::byte* const> arrays);
  std::span<const Summand> summands_at(std::span<std::byte* const> arrays, std::size_t offset);

  ShmRendezvous& rendezvous_;
  int rank_;
  std::vector<std::byte*> staged_;  // of each rank
  std::vector<Summand> summands_;   // scratch: one for each rank
  std::vector<std::byte*> sums_;    // scratch: where the sums are written
};

}  // namespace plexaura

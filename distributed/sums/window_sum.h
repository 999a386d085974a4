#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "distributed/node/reduce.h"
#include "distributed/sums/sum_algorithm.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// `window`: for ranks on one node. Each rank adds its part of arrays in shared memory, and writes the sums to
// all windows at once. Other arrays are copied in pieces through staging areas that the ranks share. A small
// array is copied whole when the ranks meet; each rank then adds all copies for itself, so that no rank waits
// a second time. MPI_Allreduce is not used: for 100 kB and more it took 2.2 to 9.3 times as long as shared arrays,
// and 1.9 to 3.8 times in pieces of 1 MB (docs/lab/performance.md). Arrays that go through the staging areas took
// 0.5 to 1 times as long as such pieces.
class WindowSum final : public SumAlgorithm {
 public:
  // Bytes of the largest array that is copied when the ranks meet.
  static constexpr std::size_t small_bytes = std::size_t{1} << 13;
  static constexpr std::size_t staging_bytes = std::size_t{1} << 20;
  static constexpr std::size_t bytes_per_rank = 2 * small_bytes + staging_bytes;

  explicit WindowSum(const SumMeans& means);

  bool keeps_order() const override { return true; }
  void bring(const CallSignature& call, const std::byte* data) override;
  void reduce_scatter(const CallSignature& call, std::byte* data) override;
  void all_gather(const CallSignature& call, std::byte* data) override;
  void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) override;

 private:
  struct Piece {
    Part elements;
    std::size_t offset;  // offset in the staging areas
  };
  static bool is_small(const CallSignature& call);
  std::size_t brought_at() const { return brought_ % 2 * small_bytes; }
  void sum_pieces(const CallSignature& call, std::byte* data);
  void add_brought(const CallSignature& call, std::byte* data);
  Part part_of_piece(const CallSignature& call, const Piece& piece, int rank) const;
  void copy_summands(const CallSignature& call, const std::byte* data, const Piece& piece);
  void add_staged(const CallSignature& call, std::byte* data, const Piece& piece);
  void copy_sums(const CallSignature& call, std::byte* data, const Piece& piece);
  void for_each_piece(const CallSignature& call, const std::function<void(Part)>& work);
  Part part_of_rank(const CallSignature& call, int rank) const;
  void add_own_part(DType dtype, std::int64_t count, std::span<std::byte* const> arrays);
  std::span<const Summand> summands_at(std::span<std::byte* const> arrays, std::size_t offset);

  ShmRendezvous& rendezvous_;
  int rank_;
  // The staging areas of all ranks for arrays that are copied when the ranks meet. Copies alternate between
  // two halves of an area, because a rank may be one meeting ahead of a rank that still adds.
  std::vector<std::byte*> brought_areas_;
  std::uint64_t brought_ = 0;  // number of arrays copied to brought_areas_ so far
  std::vector<std::byte*> staged_;
  std::vector<Summand> summands_;  // buffer with a summand for each rank
  std::vector<std::byte*> sums_;   // buffer for the addresses of the sums
};

}  // namespace plexaura

#include "distributed/group/staged_sum.h"

#include <algorithm>
#include <cstring>

namespace plexaura {
namespace {

// What lies in both.
Part common(Part a, Part b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max<std::int64_t>(std::min(a.first + a.count, b.first + b.count) - first, 0)};
}

}  // namespace

StagedSum::StagedSum(const SharedWindow& window, ShmRendezvous& rendezvous)
    : rank_(window.own()), staged_(window.bases()), from_(staged_.size()), rendezvous_(rendezvous) {
  for (std::byte*& staged : staged_) staged += window.bytes() - staging_bytes;
}

void StagedSum::for_each_piece(const CallSignature& call, const std::function<void(Part)>& work) {
  const auto most = static_cast<std::int64_t>(staging_bytes / size_of(call.dtype));
  for (std::int64_t first = 0; first < call.count; first += most)
    work({first, std::min(most, call.count - first)});
}

Part StagedSum::part_of_rank(const CallSignature& call, int rank) const {
  return part_of(call.count, call.dtype, rank, static_cast<int>(staged_.size()));
}

void StagedSum::reduce_scatter(const CallSignature& call, std::byte* data) {
  std::byte* const own = staged_[static_cast<std::size_t>(rank_)];
  for_each_piece(call, [&](Part piece) {
    std::memcpy(own, data + bytes_of(call.dtype, piece.first), bytes_of(call.dtype, piece.count));
    rendezvous_.barrier(call);
    const Part mine = common(piece, part_of_rank(call, rank_));
    std::byte* const sums = data + bytes_of(call.dtype, mine.first);
    const std::size_t offset = bytes_of(call.dtype, mine.first - piece.first);
    for (std::size_t rank = 0; mine.count > 0 && rank < staged_.size(); ++rank) {
      if (rank == 0)
        std::memcpy(sums, staged_[rank] + offset, bytes_of(call.dtype, mine.count));
      else
        add(call.dtype, sums, staged_[rank] + offset, mine.count);
    }
    rendezvous_.barrier(call);
  });
}

void StagedSum::all_gather(const CallSignature& call, std::byte* data) {
  for_each_piece(call, [&](Part piece) {
    const auto copy = [&](int rank, bool out) {
      const Part part = common(piece, part_of_rank(call, rank));
      std::byte* const staged =
          staged_[static_cast<std::size_t>(rank)] + bytes_of(call.dtype, part.first - piece.first);
      std::byte* const here = data + bytes_of(call.dtype, part.first);
      if (part.count > 0)
        std::memcpy(out ? staged : here, out ? here : staged, bytes_of(call.dtype, part.count));
    };
    copy(rank_, true);
    rendezvous_.barrier(call);
    for (int rank = 0; rank < static_cast<int>(staged_.size()); ++rank)
      if (rank != rank_) copy(rank, false);
    rendezvous_.barrier(call);
  });
}

// Each piece goes through the staging areas once.
void StagedSum::sum(const CallSignature& call, std::byte* data) {
  std::byte* const own = staged_[static_cast<std::size_t>(rank_)];
  for_each_piece(call, [&](Part piece) {
    std::byte* const here = data + bytes_of(call.dtype, piece.first);
    std::memcpy(own, here, bytes_of(call.dtype, piece.count));
    rendezvous_.barrier(call);
    const Part mine = part_of(piece.count, call.dtype, rank_, static_cast<int>(staged_.size()));
    std::ranges::transform(staged_, from_.begin(),
                           [&](std::byte* staged) { return staged + bytes_of(call.dtype, mine.first); });
    sum_in_place(call.dtype, from_, mine.count);
    rendezvous_.barrier(call);
    std::memcpy(here, own, bytes_of(call.dtype, piece.count));
  });
}

}  // namespace plexaura

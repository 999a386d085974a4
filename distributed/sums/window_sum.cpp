#include "distributed/sums/window_sum.h"

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

WindowSum::WindowSum(const SumMeans& means)
    : rendezvous_(*means.rendezvous),
      rank_(means.staging->own()),
      staged_(means.staging->bases()),
      summands_(as_shards(staged_)),
      sums_(staged_) {
  for (std::byte*& staged : staged_) staged += means.staging->bytes() - staging_bytes;
}

void WindowSum::for_each_piece(const CallSignature& call, const std::function<void(Part)>& work) {
  const auto most = static_cast<std::int64_t>(staging_bytes / size_of(call.dtype));
  for (std::int64_t first = 0; first < call.count; first += most)
    work({first, std::min(most, call.count - first)});
}

Part WindowSum::part_of_rank(const CallSignature& call, int rank) const {
  return part_of(call.count, call.dtype, rank, static_cast<int>(staged_.size()));
}

// The arrays from this byte on, one for each rank.
std::span<const Summand> WindowSum::summands_at(std::span<std::byte* const> arrays, std::size_t offset) {
  for (std::size_t rank = 0; rank < arrays.size(); ++rank) {
    sums_[rank] = arrays[rank] + offset;
    summands_[rank].data = sums_[rank];
  }
  return summands_;
}

void WindowSum::reduce_scatter(const CallSignature& call, std::byte* data) {
  std::byte* const own = staged_[static_cast<std::size_t>(rank_)];
  for_each_piece(call, [&](Part piece) {
    std::memcpy(own, data + bytes_of(call.dtype, piece.first), bytes_of(call.dtype, piece.count));
    rendezvous_.barrier(call);
    const Part mine = common(piece, part_of_rank(call, rank_));
    std::byte* const sums = data + bytes_of(call.dtype, mine.first);
    if (mine.count > 0)
      add_in_order(call.dtype, summands_at(staged_, bytes_of(call.dtype, mine.first - piece.first)),
                   mine.count, std::span(&sums, 1));
    rendezvous_.barrier(call);
  });
}

void WindowSum::all_gather(const CallSignature& call, std::byte* data) {
  for_each_piece(call, [&](Part piece) {
    const auto copy = [&](int rank, bool out) {
      const Part part = common(piece, part_of_rank(call, rank));
      if (part.count == 0) return;
      std::byte* const staged =
          staged_[static_cast<std::size_t>(rank)] + bytes_of(call.dtype, part.first - piece.first);
      std::byte* const here = data + bytes_of(call.dtype, part.first);
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
void WindowSum::sum(const CallSignature& call, std::byte* data) {
  std::byte* const own = staged_[static_cast<std::size_t>(rank_)];
  for_each_piece(call, [&](Part piece) {
    std::byte* const here = data + bytes_of(call.dtype, piece.first);
    std::memcpy(own, here, bytes_of(call.dtype, piece.count));
    rendezvous_.barrier(call);
    add_own_part(call.dtype, piece.count, staged_);
    rendezvous_.barrier(call);
    std::memcpy(here, own, bytes_of(call.dtype, piece.count));
  });
}

void WindowSum::sum_windows(const CallSignature& call, std::span<std::byte* const> windows, int) {
  add_own_part(call.dtype, call.count, windows);
  rendezvous_.barrier(call);
}

// Of arrays of so many elements, one of each rank.
void WindowSum::add_own_part(DType dtype, std::int64_t count, std::span<std::byte* const> arrays) {
  const Part part = part_of(count, dtype, rank_, static_cast<int>(arrays.size()));
  add_in_order(dtype, summands_at(arrays, bytes_of(dtype, part.first)), part.count, sums_);
}

}  // namespace plexaura

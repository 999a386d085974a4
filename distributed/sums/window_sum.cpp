#include "distributed/sums/window_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace plexaura {
namespace {

// Returns how many elements fit in one half of a staging area.
std::int64_t piece_length(const CallSignature& call) {
  return static_cast<std::int64_t>(WindowSum::staging_bytes / 2 / size_of(call.dtype));
}

// Returns the intersection of a and b. An empty result lies within `a`.
Part common(Part a, Part b) {
  const std::int64_t end = a.first + a.count;
  const std::int64_t first = std::min(std::max(a.first, b.first), end);
  return {first, std::max<std::int64_t>(std::min(end, b.first + b.count) - first, 0)};
}

}  // namespace

WindowSum::WindowSum(const SumMeans& means)
    : rendezvous_(*means.rendezvous),
      rank_(means.staging->own()),
      brought_areas_(means.staging->bases()),
      staged_(brought_areas_),
      sums_(staged_) {
  for (int rank = 0; rank < static_cast<int>(staged_.size()); ++rank)
    summands_.push_back({means.shards_of(rank), nullptr});
  for (std::byte*& area : brought_areas_) area += means.staging->bytes() - bytes_per_rank;
  for (std::byte*& staged : staged_) staged += means.staging->bytes() - staging_bytes;
}

bool WindowSum::is_small(const CallSignature& call) {
  return bytes_of(call.dtype, call.count) <= small_bytes;
}

void WindowSum::bring(const CallSignature& call, const std::byte* data) {
  if (!is_small(call) || call.count == 0) return;
  ++brought_;
  std::memcpy(brought_areas_[static_cast<std::size_t>(rank_)] + brought_at(), data,
              bytes_of(call.dtype, call.count));
}

void WindowSum::add_brought(const CallSignature& call, std::byte* data) {
  add_in_order(call.dtype, summands_at(brought_areas_, brought_at()), call.count, std::span(&data, 1));
}

void WindowSum::for_each_piece(const CallSignature& call, const std::function<void(Part)>& work) {
  const auto most = static_cast<std::int64_t>(staging_bytes / size_of(call.dtype));
  for (std::int64_t first = 0; first < call.count; first += most)
    work({first, std::min(most, call.count - first)});
}

Part WindowSum::part_of_rank(const CallSignature& call, int rank) const {
  return part_of(call.count, call.dtype, rank, static_cast<int>(staged_.size()));
}

// Returns summands for the arrays from byte `offset` on, one for each rank.
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

void WindowSum::sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) {
  if (is_small(call)) return add_brought(call, data);
  if (windows.empty()) return sum_pieces(call, data);
  add_own_part(call.dtype, call.count, windows);
  rendezvous_.barrier(call);
}

// Sums an array in pieces. Each rank adds one part of each piece. While it adds a piece, the next one is
// copied to the other half of the staging areas, so that one barrier for each piece is enough.
void WindowSum::sum_pieces(const CallSignature& call, std::byte* data) {
  const std::int64_t longest = piece_length(call);
  const std::int64_t count = (call.count + longest - 1) / longest;
  const auto piece = [&](std::int64_t i) {
    return Piece{{i * longest, std::min(longest, call.count - i * longest)},
                 i % 2 == 0 ? 0 : staging_bytes / 2};
  };
  copy_summands(call, data, piece(0));
  rendezvous_.barrier(call);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + 1 < count) copy_summands(call, data, piece(i + 1));
    add_staged(call, data, piece(i));
    rendezvous_.barrier(call);
    copy_sums(call, data, piece(i));
  }
}

// Returns the part of a rank within a piece. It uses the parts of the first piece, which may be longer: so
// the summands of a later piece never overwrite sums that other ranks still read.
Part WindowSum::part_of_piece(const CallSignature& call, const Piece& piece, int rank) const {
  const std::int64_t first = std::min(piece_length(call), call.count);
  return common({0, piece.elements.count},
                part_of(first, call.dtype, rank, static_cast<int>(staged_.size())));
}

// Copies the elements that other ranks add.
void WindowSum::copy_summands(const CallSignature& call, const std::byte* data, const Piece& piece) {
  const std::byte* const here = data + bytes_of(call.dtype, piece.elements.first);
  std::byte* const staged = staged_[static_cast<std::size_t>(rank_)] + piece.offset;
  const Part mine = part_of_piece(call, piece, rank_);
  const std::size_t begin = bytes_of(call.dtype, mine.first);
  const std::size_t end = begin + bytes_of(call.dtype, mine.count);
  std::memcpy(staged, here, begin);
  std::memcpy(staged + end, here + end, bytes_of(call.dtype, piece.elements.count) - end);
}

void WindowSum::add_staged(const CallSignature& call, std::byte* data, const Piece& piece) {
  const Part mine = part_of_piece(call, piece, rank_);
  const auto own = static_cast<std::size_t>(rank_);
  summands_at(staged_, piece.offset + bytes_of(call.dtype, mine.first));
  std::array<std::byte*, 2> to{data + bytes_of(call.dtype, piece.elements.first + mine.first), sums_[own]};
  summands_[own].data = to[0];
  add_in_order(call.dtype, summands_, mine.count, to);
}

void WindowSum::copy_sums(const CallSignature& call, std::byte* data, const Piece& piece) {
  for (int rank = 0; rank < static_cast<int>(staged_.size()); ++rank) {
    const Part theirs = part_of_piece(call, piece, rank);
    if (rank != rank_ && theirs.count > 0)
      std::memcpy(data + bytes_of(call.dtype, piece.elements.first + theirs.first),
                  staged_[static_cast<std::size_t>(rank)] + piece.offset + bytes_of(call.dtype, theirs.first),
                  bytes_of(call.dtype, theirs.count));
  }
}

// Adds this rank's part of the arrays, one for each rank, each with `count` elements.
void WindowSum::add_own_part(DType dtype, std::int64_t count, std::span<std::byte* const> arrays) {
  const Part part = part_of(count, dtype, rank_, static_cast<int>(arrays.size()));
  add_in_order(dtype, summands_at(arrays, bytes_of(dtype, part.first)), part.count, sums_);
}

}  // namespace plexaura

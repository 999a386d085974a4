#include "distributed/strategies/reduce_broadcast.h"

#include <algorithm>

namespace plexaura {
namespace {

constexpr int root_rank = 0;
constexpr int gradient_tag = 30'000;  // of gradients; users of the communicator count theirs from 0
constexpr std::size_t broadcast_piece_bytes = std::size_t{1} << 20;

// Calls `work` with one piece of the bytes after the other, the same pieces on all ranks.
template <class Byte, class Work>
void for_each_piece(std::span<Byte> bytes, Work&& work) {
  for (std::size_t first = 0; first < bytes.size(); first += broadcast_piece_bytes)
    work(bytes.subspan(first, std::min(broadcast_piece_bytes, bytes.size() - first)));
}

}  // namespace

void ReduceBroadcast::begin(WeightsImmigration& border) {
  BucketSum::begin(border);
  if (communicator().rank() != root_rank) return;
  const auto ranks = static_cast<std::size_t>(communicator().size());
  received_.resize((ranks - 1) * broadcast_piece_bytes);
  summands_ = as_shards(std::vector<std::byte*>(ranks));
}

void ReduceBroadcast::sum(DType dtype, std::span<std::byte> gradients, std::string_view what) {
  // A barrier knows all ranks that did not come; a message only the one at its other end.
  communicator().barrier(what);
  if (communicator().rank() == root_rank) {
    add_from_all(dtype, gradients, what);
  } else {
    send_to_root(gradients, what);
  }
  communicator().broadcast(gradients.data(), gradients.size(), root_rank, what);
}

void ReduceBroadcast::send_to_root(std::span<const std::byte> gradients, std::string_view what) {
  for_each_piece(gradients, [&](std::span<const std::byte> piece) {
    communicator().send({.rank = root_rank, .tag = gradient_tag}, piece, what);
  });
}

void ReduceBroadcast::add_from_all(DType dtype, std::span<std::byte> gradients, std::string_view what) {
  for_each_piece(gradients, [&](std::span<std::byte> piece) {
    std::byte* const sum = piece.data();
    std::byte* theirs = received_.data();
    summands_[root_rank].data = sum;
    for (int rank = root_rank + 1; rank < communicator().size(); ++rank) {
      communicator().receive({.rank = rank, .tag = gradient_tag}, {theirs, piece.size()}, what);
      summands_[static_cast<std::size_t>(rank)].data = theirs;
      theirs += piece.size();
    }
    add_in_order(dtype, summands_, static_cast<std::int64_t>(piece.size() / size_of(dtype)),
                 std::span(&sum, 1));
  });
}

}  // namespace plexaura

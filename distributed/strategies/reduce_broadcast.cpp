#include "distributed/strategies/reduce_broadcast.h"

#include <algorithm>

#include "distributed/group/reduce.h"

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
  if (communicator().rank() == root_rank) received_.resize(broadcast_piece_bytes);
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
    const std::span<std::byte> theirs = std::span(received_).first(piece.size());
    for (int rank = 0; rank < communicator().size(); ++rank) {
      if (rank == root_rank) continue;
      communicator().receive({.rank = rank, .tag = gradient_tag}, theirs, what);
      add(dtype, piece.data(), theirs.data(), static_cast<std::int64_t>(piece.size() / size_of(dtype)));
    }
  });
}

}  // namespace plexaura

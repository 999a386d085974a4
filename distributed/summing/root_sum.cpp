#include "distributed/summing/root_sum.h"

#include <algorithm>

#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

// Calls `work` with pieces of the bytes in sequence, the same pieces on all ranks.
template <class Byte, class Work>
void for_each_piece(std::span<Byte> bytes, Work&& work) {
  for (std::size_t first = 0; first < bytes.size(); first += piece_bytes)
    work(bytes.subspan(first, std::min(piece_bytes, bytes.size() - first)));
}

}  // namespace

RootSum::RootSum(Communicator& communicator, int root, bool root_adds)
    : communicator_(communicator), root_(root), root_adds_(root_adds) {
  if (communicator.rank() != root) return;
  const auto others = static_cast<std::size_t>(communicator.size() - 1);
  received_.resize(others * piece_bytes);
  summands_ = as_shards(std::vector<std::byte*>(others + (root_adds ? 1 : 0)));
}

void RootSum::sum(DType dtype, std::span<std::byte> values, std::string_view what) {
  gather(dtype, values, what);
  communicator_.broadcast(values.data(), values.size(), root_, what);
}

void RootSum::gather(DType dtype, std::span<std::byte> values, std::string_view what) {
  // A barrier reports all ranks that did not come; a message reports only the rank at its other end.
  communicator_.barrier(what);
  if (communicator_.rank() == root_)
    add_from_all(dtype, values, what);
  else
    send(values, what);
}

void RootSum::send(std::span<const std::byte> values, std::string_view what) {
  for_each_piece(values, [&](std::span<const std::byte> piece) {
    communicator_.send({.rank = root_, .tag = tag::gradients_to_root}, piece, what);
  });
}

void RootSum::add_from_all(DType dtype, std::span<std::byte> values, std::string_view what) {
  for_each_piece(values, [&](std::span<std::byte> piece) {
    std::byte* const sum = piece.data();
    std::byte* theirs = received_.data();
    auto summand = summands_.begin();
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      if (rank == root_) {
        if (root_adds_) (summand++)->data = sum;
        continue;
      }
      communicator_.receive({.rank = rank, .tag = tag::gradients_to_root}, {theirs, piece.size()}, what);
      (summand++)->data = theirs;
      theirs += piece.size();
    }
    add_in_order(dtype, summands_, static_cast<std::int64_t>(piece.size() / size_of(dtype)),
                 std::span(&sum, 1));
  });
}

}  // namespace plexaura

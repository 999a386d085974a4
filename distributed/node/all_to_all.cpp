#include "distributed/node/all_to_all.h"

#include <algorithm>

#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

constexpr std::size_t largest_piece_bytes = std::size_t{1} << 18;  // largest part of a block in one message
constexpr std::size_t pieces_ahead = 4;

}  // namespace

void AllToAll::run(const CallSignature& call, double deadline_seconds, std::span<const std::byte> blocks,
                   std::span<std::byte> received) {
  const auto block = static_cast<std::size_t>(call.count);
  const std::size_t pieces = (block + largest_piece_bytes - 1) / largest_piece_bytes;
  const auto piece = [&](std::size_t i) {
    return Piece{i * largest_piece_bytes, std::min(largest_piece_bytes, block - i * largest_piece_bytes),
                 block};
  };
  RankWait wait(alarm_, {call, deadline_seconds, topology_.numbers()});
  const std::size_t own = Piece{0, 0, block}.at(transport_.rank());
  std::ranges::copy(blocks.subspan(own, block), received.subspan(own).begin());
  for (std::size_t i = 0; i < pieces + pieces_ahead; ++i) {
    if (i < pieces) {
      expect(piece(i));
      send(piece(i), blocks);
    }
    if (i >= pieces_ahead && i - pieces_ahead < pieces) take(piece(i - pieces_ahead), received, wait);
  }
  while (!outbox_.all_left()) wait.pause();
}

void AllToAll::expect(const Piece& piece) {
  for (int from = 0; from < transport_.size(); ++from)
    if (from != transport_.rank()) inbox_.expect(piece.bytes, from, tag::blocks);
}

// Sends a piece to all ranks. Begins with the next rank, so that not all ranks send to the same one.
void AllToAll::send(const Piece& piece, std::span<const std::byte> blocks) {
  for (int step = 1; step < transport_.size(); ++step) {
    const int to = (transport_.rank() + step) % transport_.size();
    outbox_.send(blocks.subspan(piece.at(to), piece.bytes), to, tag::blocks);
  }
}

void AllToAll::take(const Piece& piece, std::span<std::byte> received, RankWait& wait) {
  for (int from = 0; from < transport_.size(); ++from) {
    if (from == transport_.rank()) continue;
    while (!inbox_.have_come(1)) wait.pause();
    wait.progressed();
    std::ranges::copy(inbox_.message(0), received.subspan(piece.at(from)).begin());
    inbox_.drop(1);
  }
}

}  // namespace plexaura

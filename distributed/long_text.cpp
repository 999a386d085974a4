#include "distributed/long_text.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace plexaura {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr double kPatience = 600;  // seconds

Peer end_at(int rank) { return {.rank = rank, .deadline_seconds = kPatience}; }

}  // namespace

void send_text(Communicator& ranks, int to, std::string_view text, std::string_view what) {
  const std::uint64_t bytes = text.size();
  ranks.send(end_at(to), std::as_bytes(std::span(&bytes, 1)), what);
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMostBytes)))
    ranks.send(end_at(to), std::as_bytes(std::span(text.substr(0, kMostBytes))), what);
}

void receive_text(Communicator& ranks, int from, const std::function<void(std::string_view)>& take,
                  std::string_view what) {
  std::uint64_t bytes = 0;
  ranks.receive(end_at(from), std::as_writable_bytes(std::span(&bytes, 1)), what);
  std::string piece;
  for (; bytes > 0; bytes -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(bytes, kMostBytes));
    ranks.receive(end_at(from), std::as_writable_bytes(std::span(piece)), what);
    take(piece);
  }
}

}  // namespace plexaura

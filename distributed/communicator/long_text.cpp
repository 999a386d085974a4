#include "distributed/communicator/long_text.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace plexaura {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;

}  // namespace

void send_text(Communicator& ranks, const Peer& to, std::string_view text, std::string_view what) {
  const std::uint64_t bytes = text.size();
  ranks.send(to, std::as_bytes(std::span(&bytes, 1)), what);
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), part_bytes)))
    ranks.send(to, std::as_bytes(std::span(text.substr(0, part_bytes))), what);
}

void receive_text(Communicator& ranks, const Peer& from, const std::function<void(std::string_view)>& take,
                  std::string_view what) {
  std::uint64_t bytes = 0;
  ranks.receive(from, std::as_writable_bytes(std::span(&bytes, 1)), what);
  std::string piece;
  for (; bytes > 0; bytes -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(bytes, part_bytes));
    ranks.receive(from, std::as_writable_bytes(std::span(piece)), what);
    take(piece);
  }
}

}  // namespace plexaura

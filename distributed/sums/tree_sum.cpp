#include "distributed/sums/tree_sum.h"

#include <algorithm>
#include <cstring>

#include "core/base/clock.h"
#include "distributed/node/reduce.h"
#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

// The least number of messages that a rank sends ahead, so that all levels of the tree work at the same time.
constexpr std::int64_t least_pieces_ahead = 4;

}  // namespace

TreeSum::TreeSum(const SumMeans& means)
    : WholeSum(means),
      means_(means),
      from_children_(means.transport),
      from_parent_(means.transport),
      outbox_(means.transport) {
  const int rank = means.transport.rank();
  int step = 1;
  for (; (rank & step) == 0 && step < means.transport.size(); step *= 2)
    if (rank + step < means.transport.size()) children_.push_back(rank + step);
  if (rank > 0) parent_ = rank - step;
}

void TreeSum::sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> /*windows*/) {
  const double begin = seconds_now();
  const Pace& pace = PaceChoice::pace(call.pace);
  const std::int64_t pieces_ahead = std::max(pace.bytes_ahead / pace.message_bytes, least_pieces_ahead);
  const std::int64_t longest = pace.message_bytes / static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t count = (call.count + longest - 1) / longest;
  const auto piece = [&](std::int64_t i) {
    const std::int64_t length = std::min(longest, call.count - i * longest);
    return Piece{data + bytes_of(call.dtype, i * longest), length, bytes_of(call.dtype, length)};
  };
  for (std::int64_t i = 0; i < count + 2 * pieces_ahead; ++i) {
    if (i < count) expect(piece(i));
    if (const std::int64_t up = i - pieces_ahead; 0 <= up && up < count) add_up(call, piece(up));
    if (const std::int64_t down = i - 2 * pieces_ahead; 0 <= down && down < count)
      bring_down(call, piece(down));
    outbox_.under_way();
  }
  means_.wait_for(outbox_, call);
  means_.paces.took(call, (seconds_now() - begin) / 2);
}

void TreeSum::expect(const Piece& piece) {
  for (const int child : children_) from_children_.expect(piece.bytes, child, tag::summands);
  if (parent_ >= 0) from_parent_.expect(piece.bytes, parent_, tag::sums);
}

void TreeSum::add_up(const CallSignature& call, const Piece& piece) {
  means_.wait_for(from_children_, children_.size(), call);
  for (std::size_t child = 0; child < children_.size(); ++child)
    add(call.dtype, piece.data, from_children_.message(child).data(), piece.count);
  from_children_.drop(children_.size());
  if (parent_ >= 0) return outbox_.send(std::span(piece.data, piece.bytes), parent_, tag::summands);
  send_down(piece);
}

void TreeSum::bring_down(const CallSignature& call, const Piece& piece) {
  if (parent_ < 0) return;
  means_.wait_for(from_parent_, 1, call);
  std::memcpy(piece.data, from_parent_.message(0).data(), piece.bytes);
  from_parent_.drop(1);
  send_down(piece);
}

// Sends a piece to the children. Begins with the last child, which usually has the most ranks below it.
void TreeSum::send_down(const Piece& piece) {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child)
    outbox_.send(std::span(piece.data, piece.bytes), *child, tag::sums);
}

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <vector>

#include "distributed/sums/whole_sum.h"
#include "distributed/wire/inbox.h"
#include "distributed/wire/outbox.h"

namespace plexaura {

// `tree`: sums go up a binomial tree to rank 0, added in the order of sum_order.h, and come back down.
// It sends few messages, for many ranks and few elements, but some ranks send the data several times.
class TreeSum final : public WholeSum {
 public:
  explicit TreeSum(const SumMeans& means);

  bool keeps_order() const override { return true; }
  void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) override;

 private:
  struct Piece {
    std::byte* data;
    std::int64_t count;
    std::size_t bytes;
  };
  void expect(const Piece& piece);
  void add_up(const CallSignature& call, const Piece& piece);
  void bring_down(const CallSignature& call, const Piece& piece);
  void send_down(const Piece& piece);

  SumMeans means_;
  // The ranks directly below this one in the tree, ascending. Child i and the ranks below it are 2^i ranks, or fewer
  // at the end of the ranks.
  std::vector<int> children_;
  int parent_ = -1;  // rank above this one in the tree; -1 on rank 0
  Inbox from_children_;
  Inbox from_parent_;
  Outbox outbox_;
};

}  // namespace plexaura

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distributed/node/reduce.h"
#include "distributed/sums/sum_algorithm.h"
#include "distributed/sums/sum_order.h"
#include "distributed/wire/inbox.h"
#include "distributed/wire/outbox.h"

namespace plexaura {

// Sums over groups of ranks with messages. The data is cut into one part for each group: all others send the group
// what they have of it, and it sends the sums back. With n groups each sends 2 (n - 1) / n of the data if its ranks are
// one block, which is what a ring does, but every sum is made by one that has all its summands, so that they can be
// added in the order of sum_order.h. Parts travel in segments. In each turn a rank sends one to another rank and takes one from a third, all of
// them in the same order, so that no rank gets more than its share at a time; the next leave while those before them are added.
//
// The ranks of a group see each other's arrays. They send only the sums of those blocks that are theirs alone, one
// where ranks that follow each other are together and as many as a power of two; each further block is (n - 1) / n of the
// data. As many ranks of each group as the
// smallest has take part, each with a stripe of the data.
//
// By hand, for MPI_Allreduce has no deadline, and took 3.3 times as long for 12 MB between three network namespaces of
// 300 Mbit/s (docs/lab/performance.md).
class PartExchange {
 public:
  using Groups = std::vector<std::vector<int>>;  // the ranks of each, ascending
  PartExchange(const SumMeans& means, Groups groups);
  // Each rank is a group by itself.
  explicit PartExchange(const SumMeans& means);

  // Each works on `call.count` elements of `arrays`: those of this rank's group, in the order of ranks. What this rank
  // writes it writes to all of them. After reduce() a group has the sums of its part alone, where groups are single
  // ranks that of part_of(count, dtype, rank, ranks); gather() brings each group's part to all; sum() does both.
  void sum(const CallSignature& call, std::span<std::byte* const> arrays) { run(call, arrays, true, true); }
  void reduce(const CallSignature& call, std::span<std::byte* const> arrays) {
    run(call, arrays, true, false);
  }
  void gather(const CallSignature& call, std::span<std::byte* const> arrays) {
    run(call, arrays, false, true);
  }

 private:
  struct Group {
    std::vector<int> ranks;
    std::vector<ShardRange> blocks;  // what it sends, one after the other
  };
  // One call.
  struct Job {
    const CallSignature& call;
    std::span<std::byte* const> arrays;
    Part stripe;           // of this rank
    std::int64_t longest;  // elements of a segment

    std::byte* at(std::size_t member, const Part& segment) const {
      return arrays[member] + bytes_of(call.dtype, segment.first);
    }
    std::size_t bytes(const Part& segment) const { return bytes_of(call.dtype, segment.count); }
  };

  // A segment goes to one group and comes from another.
  struct Turn {
    std::int64_t round;  // of the segments
    int step;            // of the round, from 1
    int to;
    int from;
  };

  void run(const CallSignature& call, std::span<std::byte* const> arrays, bool reduces, bool gathers);
  std::int64_t turns_ahead(const Job& job) const;
  Turn turn(std::int64_t number) const;
  int others() const { return static_cast<int>(groups_.size()) - 1; }
  Part segment(const Job& job, int group, std::int64_t round) const;
  std::int64_t rounds(const Job& job) const;
  std::vector<int> shards_of(std::span<const int> ranks) const;
  int rank_in(int group) const;
  void send_summands(const Job& job, const Turn& turn);
  void take_summands(const Job& job, const Turn& turn);
  void add_own_part(const Job& job, std::int64_t round);
  void send_sums(const Job& job, const Turn& turn);
  void take_sums(const Job& job, const Turn& turn);

  SumMeans means_;
  std::vector<Group> groups_;
  int own_ = 0;     // group of this rank
  int worker_ = 0;  // its place there
  int workers_ = 0;
  Inbox summands_in_;
  Inbox sums_in_;
  Outbox outbox_;
  std::vector<Summand> summands_;  // scratch
  std::vector<std::byte*> to_;     // scratch
};

}  // namespace plexaura

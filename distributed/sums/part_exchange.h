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

// Sums over groups of ranks by messages. The data is cut into one part for each group: all other groups send
// the group their values of its part, and it sends the sums back. With n groups, each sends 2 (n - 1) / n of
// the data if its ranks are one block. A ring sends as much, but here one rank has all summands of a sum, so
// that it can add them in the order of sum_order.h. Parts are sent in segments. In each turn a rank sends a
// segment to another rank and receives one from a third. All ranks do so in the same order, so that no rank
// receives more than its share at a time. The next segments are sent while earlier ones are added.
//
// The ranks of a group can access each other's arrays. They send only the sums of the blocks that consist of
// their shards alone: one block if consecutive ranks are together and their number is a power of two; each
// further block adds (n - 1) / n of the data. In each group as many ranks work as the smallest group has,
// each on a stripe of the data.
//
// MPI_Allreduce is not used because it has no deadline, and took 3.3 times as long for 12 MB between three
// network namespaces of 300 Mbit/s (docs/lab/performance.md).
class PartExchange {
 public:
  using Groups = std::vector<std::vector<int>>;  // the ranks of each group, ascending
  PartExchange(const SumMeans& means, Groups groups);
  // Makes each rank a group of its own.
  explicit PartExchange(const SumMeans& means);

  // Each function works on `call.count` elements of `arrays`: the arrays of this rank's group, in the order
  // of ranks. A rank writes its results to all of these arrays. After reduce(), a group has only the sums of
  // its part. If each group is a single rank, its part is part_of(count, dtype, rank, ranks). gather() copies
  // each group's part to all groups. sum() does both.
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
    std::vector<ShardRange> blocks;  // the blocks whose sums the group sends, in this order
  };
  // The data of one call.
  struct Job {
    const CallSignature& call;
    std::span<std::byte* const> arrays;
    Part stripe;           // the stripe of the data on which this rank works
    std::int64_t longest;  // number of elements in a segment

    std::byte* at(std::size_t member, const Part& segment) const {
      return arrays[member] + bytes_of(call.dtype, segment.first);
    }
    std::size_t bytes(const Part& segment) const { return bytes_of(call.dtype, segment.count); }
  };

  // A turn, in which a segment is sent to one group and a segment is received from another group.
  struct Turn {
    std::int64_t round;  // number of the round of segments
    int step;            // number of the turn in its round, from 1
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
  int own_ = 0;     // index of this rank's group
  int worker_ = 0;  // index of this rank in its group
  int workers_ = 0;
  Inbox summands_in_;
  Inbox sums_in_;
  Outbox outbox_;
  std::vector<Summand> summands_;  // buffer for the summands of one addition
  std::vector<std::byte*> to_;     // buffer for the addresses of one addition
};

}  // namespace plexaura

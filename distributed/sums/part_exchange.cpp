#include "distributed/sums/part_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

PartExchange::Groups single_ranks(int count) {
  PartExchange::Groups groups;
  for (int rank = 0; rank < count; ++rank) groups.push_back({rank});
  return groups;
}

}  // namespace

PartExchange::PartExchange(const SumMeans& means)
    : PartExchange(means, single_ranks(means.transport.size())) {}

PartExchange::PartExchange(const SumMeans& means, Groups groups)
    : means_(means), summands_in_(means.transport), sums_in_(means.transport), outbox_(means.transport) {
  workers_ = means.transport.size();
  for (std::vector<int>& ranks : groups) {
    const auto found = std::ranges::find(ranks, means.transport.rank());
    if (found != ranks.end()) {
      own_ = static_cast<int>(groups_.size());
      worker_ = static_cast<int>(found - ranks.begin());
    }
    workers_ = std::min(workers_, static_cast<int>(ranks.size()));
    std::vector<ShardRange> blocks =
        blocks_among(shards_of(ranks), means.shards_of(means.transport.size() - 1).last);
    groups_.push_back({std::move(ranks), std::move(blocks)});
  }
}

std::vector<int> PartExchange::shards_of(std::span<const int> ranks) const {
  std::vector<int> all;
  for (const int rank : ranks)
    for (int shard = means_.shards_of(rank).first; shard < means_.shards_of(rank).last; ++shard)
      all.push_back(shard);
  return all;
}

// Returns the rank of another group that works on the same stripe as this rank.
int PartExchange::rank_in(int group) const {
  return groups_[static_cast<std::size_t>(group)].ranks[static_cast<std::size_t>(worker_)];
}

// Returns the elements of a group's part that are exchanged in one round.
Part PartExchange::segment(const Job& job, int group, std::int64_t round) const {
  const Part part = part_of(job.stripe.count, job.call.dtype, group, static_cast<int>(groups_.size()));
  const std::int64_t first = round * job.longest;
  return {job.stripe.first + part.first + first,
          std::max<std::int64_t>(std::min(job.longest, part.count - first), 0)};
}

std::int64_t PartExchange::rounds(const Job& job) const {
  std::int64_t most = 0;
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group)
    while (segment(job, group, most).count > 0) ++most;
  return most;
}

void PartExchange::run(const CallSignature& call, std::span<std::byte* const> arrays, bool reduces,
                       bool gathers) {
  if (worker_ >= workers_) return;
  const double begin = seconds_now();
  const Job job{call, arrays, part_of(call.count, call.dtype, worker_, workers_),
                PaceChoice::pace(call.pace).message_bytes / static_cast<std::int64_t>(size_of(call.dtype))};
  const std::int64_t all_rounds = rounds(job);
  if (others() == 0 && reduces)
    for (std::int64_t round = 0; round < all_rounds; ++round) add_own_part(job, round);
  const std::int64_t turns = all_rounds * others();
  const std::int64_t ahead = std::min(turns_ahead(job), turns);
  const std::int64_t added_after = reduces ? ahead : 0;
  // The part of a round is added at the round's end.
  const std::int64_t sent_after = added_after + (reduces ? others() - 1 : 0);
  const std::int64_t taken_after = gathers ? sent_after + ahead : added_after;
  const auto do_turn = [&](std::int64_t number, const auto& work) {
    if (0 <= number && number < turns) work(turn(number));
  };
  for (std::int64_t number = 0; number < turns + taken_after; ++number) {
    if (reduces) do_turn(number, [&](const Turn& turn) { send_summands(job, turn); });
    if (reduces) do_turn(number - added_after, [&](const Turn& turn) { take_summands(job, turn); });
    if (gathers) do_turn(number - sent_after, [&](const Turn& turn) { send_sums(job, turn); });
    if (gathers) do_turn(number - taken_after, [&](const Turn& turn) { take_sums(job, turn); });
    if (means_.rendezvous != nullptr) means_.rendezvous->beat();
    outbox_.under_way();
  }
  means_.wait_for(outbox_, call);
  const int halves = (reduces ? 1 : 0) + (gathers ? 1 : 0);
  means_.paces.took(call, (seconds_now() - begin) / halves);
}

std::int64_t PartExchange::turns_ahead(const Job& job) const {
  const auto message = std::max<std::int64_t>(static_cast<std::int64_t>(job.bytes(segment(job, 0, 0))), 1);
  return std::max<std::int64_t>(PaceChoice::pace(job.call.pace).bytes_ahead / message, 1);
}

PartExchange::Turn PartExchange::turn(std::int64_t number) const {
  const int step = static_cast<int>(number % others()) + 1;
  const int groups = static_cast<int>(groups_.size());
  return {number / others(), step, (own_ + step) % groups, (own_ + groups - step) % groups};
}

void PartExchange::send_summands(const Job& job, const Turn& turn) {
  const Group& mine = groups_[static_cast<std::size_t>(own_)];
  const Group& sender = groups_[static_cast<std::size_t>(turn.from)];
  if (const Part part = segment(job, own_, turn.round); part.count > 0)
    summands_in_.expect(job.bytes(part) * sender.blocks.size(), rank_in(turn.from), tag::summands);
  const Part theirs = segment(job, turn.to, turn.round);
  if (theirs.count == 0) return;
  const std::span<std::byte> message = outbox_.draft(job.bytes(theirs) * mine.blocks.size());
  for (std::size_t block = 0; block < mine.blocks.size(); ++block) {
    summands_.clear();
    for (std::size_t member = 0; member < mine.ranks.size(); ++member) {
      const ShardRange shards = means_.shards_of(mine.ranks[member]);
      if (shards.first >= mine.blocks[block].first && shards.first < mine.blocks[block].last)
        summands_.push_back({shards, job.at(member, theirs)});
    }
    std::byte* const sum = message.data() + block * job.bytes(theirs);
    add_in_order(job.call.dtype, summands_, theirs.count, std::span(&sum, 1));
  }
  outbox_.send(message, rank_in(turn.to), tag::summands);
}

void PartExchange::take_summands(const Job& job, const Turn& turn) {
  if (segment(job, own_, turn.round).count == 0) return;
  means_.wait_for(summands_in_, static_cast<std::size_t>(turn.step), job.call);
  if (turn.step == others()) add_own_part(job, turn.round);
}

void PartExchange::add_own_part(const Job& job, std::int64_t round) {
  const Part mine = segment(job, own_, round);
  summands_.clear();
  to_.clear();
  for (std::size_t member = 0; member < job.arrays.size(); ++member) {
    to_.push_back(job.at(member, mine));
    summands_.push_back(
        {means_.shards_of(groups_[static_cast<std::size_t>(own_)].ranks[member]), to_.back()});
  }
  for (int other = 0; other < others(); ++other) {
    const std::byte* data = summands_in_.message(static_cast<std::size_t>(other)).data();
    for (const ShardRange& block :
         groups_[static_cast<std::size_t>(turn(round * others() + other).from)].blocks) {
      summands_.push_back({block, data});
      data += job.bytes(mine);
    }
  }
  std::ranges::sort(summands_, {}, [](const Summand& summand) { return summand.shards.first; });
  add_in_order(job.call.dtype, summands_, mine.count, to_);
  summands_in_.drop(groups_.size() - 1);
}

void PartExchange::send_sums(const Job& job, const Turn& turn) {
  if (const Part theirs = segment(job, turn.from, turn.round); theirs.count > 0)
    sums_in_.expect(job.bytes(theirs), rank_in(turn.from), tag::sums);
  if (const Part mine = segment(job, own_, turn.round); mine.count > 0)
    outbox_.send(std::span(job.at(0, mine), job.bytes(mine)), rank_in(turn.to), tag::sums);
}

void PartExchange::take_sums(const Job& job, const Turn& turn) {
  const Part theirs = segment(job, turn.from, turn.round);
  if (theirs.count == 0) return;
  means_.wait_for(sums_in_, 1, job.call);
  for (std::size_t member = 0; member < job.arrays.size(); ++member)
    std::memcpy(job.at(member, theirs), sums_in_.message(0).data(), job.bytes(theirs));
  sums_in_.drop(1);
}

}  // namespace plexaura

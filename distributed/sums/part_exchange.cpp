#include "distributed/sums/part_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "distributed/group/tags.h"

namespace plexaura {
namespace {

constexpr std::int64_t bytes_ahead = std::int64_t{1} << 19;  // of the segments under way, over all groups
constexpr std::int64_t least_rounds_ahead = 4;
constexpr std::int64_t least_segment_bytes = std::int64_t{1} << 14;

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

// The other rank that carries this stripe.
int PartExchange::rank_in(int group) const {
  return groups_[static_cast<std::size_t>(group)].ranks[static_cast<std::size_t>(worker_)];
}

// Of the part of a group: what is exchanged in one round.
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
  const auto groups = static_cast<std::int64_t>(groups_.size());
  const std::int64_t segment_bytes =
      std::clamp(bytes_ahead / least_rounds_ahead / groups, least_segment_bytes, message_bytes);
  const Job job{call, arrays, part_of(call.count, call.dtype, worker_, workers_),
                segment_bytes / static_cast<std::int64_t>(size_of(call.dtype))};
  const std::int64_t count = rounds(job);
  const std::int64_t rounds_ahead = std::max(bytes_ahead / segment_bytes / groups, least_rounds_ahead);
  const std::int64_t added_after = reduces ? rounds_ahead : 0;
  const std::int64_t taken_after = added_after + (gathers ? rounds_ahead : 0);
  const auto is_round = [&](std::int64_t round) { return 0 <= round && round < count; };
  for (std::int64_t round = 0; round < count + taken_after; ++round) {
    if (is_round(round) && reduces) expect_summands(job, round);
    if (is_round(round) && gathers) expect_sums(job, round);
    if (is_round(round) && reduces) send_summands(job, round);
    if (is_round(round - added_after) && reduces) add_own_part(job, round - added_after);
    if (is_round(round - added_after) && gathers) send_sums(job, round - added_after);
    if (is_round(round - taken_after) && gathers) take_sums(job, round - taken_after);
    if (means_.rendezvous != nullptr) means_.rendezvous->beat();
    outbox_.under_way();
  }
  means_.wait_for(outbox_, call);
}

void PartExchange::expect_summands(const Job& job, std::int64_t round) {
  const std::size_t bytes = job.bytes(segment(job, own_, round));
  for (int group = 0; group < static_cast<int>(groups_.size()) && bytes > 0; ++group)
    if (group != own_)
      summands_in_.expect(bytes * groups_[static_cast<std::size_t>(group)].blocks.size(), rank_in(group),
                          tag::summands);
}

void PartExchange::send_summands(const Job& job, std::int64_t round) {
  const Group& mine = groups_[static_cast<std::size_t>(own_)];
  for (int step = 1; step < static_cast<int>(groups_.size()); ++step) {
    const Part theirs = segment(job, behind(step), round);
    if (theirs.count == 0) continue;
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
    outbox_.post(rank_in(behind(step)), tag::summands);
  }
}

void PartExchange::expect_sums(const Job& job, std::int64_t round) {
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    const std::size_t bytes = job.bytes(segment(job, group, round));
    if (group != own_ && bytes > 0) sums_in_.expect(bytes, rank_in(group), tag::sums);
  }
}

void PartExchange::add_own_part(const Job& job, std::int64_t round) {
  const Part mine = segment(job, own_, round);
  if (mine.count == 0) return;
  means_.wait_for(summands_in_, groups_.size() - 1, job.call);
  summands_.clear();
  to_.clear();
  for (std::size_t member = 0; member < job.arrays.size(); ++member) {
    to_.push_back(job.at(member, mine));
    summands_.push_back(
        {means_.shards_of(groups_[static_cast<std::size_t>(own_)].ranks[member]), to_.back()});
  }
  std::size_t message = 0;
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    if (group == own_) continue;
    const std::byte* data = summands_in_.message(message++).data();
    for (const ShardRange& block : groups_[static_cast<std::size_t>(group)].blocks) {
      summands_.push_back({block, data});
      data += job.bytes(mine);
    }
  }
  std::ranges::sort(summands_, {}, [](const Summand& summand) { return summand.shards.first; });
  add_in_order(job.call.dtype, summands_, mine.count, to_);
  summands_in_.drop(groups_.size() - 1);
}

void PartExchange::send_sums(const Job& job, std::int64_t round) {
  const Part mine = segment(job, own_, round);
  for (int step = 1; step < static_cast<int>(groups_.size()) && mine.count > 0; ++step)
    outbox_.send(std::span(job.at(0, mine), job.bytes(mine)), rank_in(behind(step)), tag::sums);
}

void PartExchange::take_sums(const Job& job, std::int64_t round) {
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    const Part theirs = segment(job, group, round);
    if (group == own_ || theirs.count == 0) continue;
    means_.wait_for(sums_in_, 1, job.call);
    for (std::size_t member = 0; member < job.arrays.size(); ++member)
      std::memcpy(job.at(member, theirs), sums_in_.message(0).data(), job.bytes(theirs));
    sums_in_.drop(1);
  }
}

}  // namespace plexaura

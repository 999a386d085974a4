#include "distributed/sums/ring_sum.h"

#include <algorithm>
#include <cstring>

#include "distributed/wire/tags.h"

namespace plexaura {
namespace {

constexpr std::int64_t rounds_together = 16;

}  // namespace

RingSum::RingSum(const SumMeans& means)
    : means_(means),
      ranks_(means.transport.size()),
      rank_(means.transport.rank()),
      inbox_(means.transport),
      outbox_(means.transport) {}

// Runs the rounds. Messages arrive in the order in which they were sent, so all ranks go through the same
// sequence of steps and rounds.
void RingSum::run(const Job& job) {
  const std::int64_t longest = message_bytes / static_cast<std::int64_t>(size_of(job.call.dtype));
  // An upper bound for the elements of a part. Parts are cut at cache lines, so one may be longer than the
  // others, but by less than a segment.
  const std::int64_t of_part = (job.call.count + ranks_ - 1) / ranks_ + longest;
  for (std::int64_t begun = 0; begun < of_part; begun += rounds_together * longest) {
    const std::int64_t end = begun + rounds_together * longest;
    for (std::int64_t first = begun; first < end; first += longest) begin(job, {first, longest});
    for (int number = 0; number < steps(job); ++number)
      for (std::int64_t first = begun; first < end; first += longest) step(job, {first, longest}, number);
  }
  means_.wait_for(outbox_, job.call);
}

void RingSum::begin(const Job& job, const Round& round) {
  expect(job, round, 0);
  const Part own = segment(job, round, (rank_ + ranks_ - (job.reduces ? 1 : 0)) % ranks_);
  if (own.count > 0) outbox_.send(bytes(job, own), (rank_ + 1) % ranks_, tag::summands);
}

void RingSum::step(const Job& job, const Round& round, int number) {
  const bool is_last = number + 1 == steps(job);
  if (!is_last) expect(job, round, number + 1);
  const Part arriving = segment(job, round, arriving_part(job, number));
  if (arriving.count == 0) return;
  means_.wait_for(inbox_, 1, job.call);
  const std::span<std::byte> here = bytes(job, arriving);
  if (job.reduces && number < ranks_ - 1)
    add(job.call.dtype, here.data(), inbox_.message(0).data(), arriving.count);
  else
    std::ranges::copy(inbox_.message(0), here.begin());
  inbox_.drop(1);
  if (!is_last) outbox_.send(here, (rank_ + 1) % ranks_, tag::summands);
  outbox_.under_way();
}

// Returns the part that arrives in a step. Sums arrive after the last summand. The first sum is that of the
// part of the rank before this one.
int RingSum::arriving_part(const Job& job, int step) const {
  const bool is_sum = !job.reduces || step >= ranks_ - 1;
  const int steps_of_sums = job.reduces ? step - (ranks_ - 1) : step;
  return (rank_ - 1 - (is_sum ? steps_of_sums : step + 1) + 2 * ranks_) % ranks_;
}

Part RingSum::segment(const Job& job, const Round& round, int part) const {
  const Part whole = part_of(job.call.count, job.call.dtype, part, ranks_);
  const std::int64_t count = std::min(round.longest, whole.count - round.first);
  return {whole.first + round.first, std::max<std::int64_t>(count, 0)};
}

void RingSum::expect(const Job& job, const Round& round, int step) {
  const Part arriving = segment(job, round, arriving_part(job, step));
  if (arriving.count > 0)
    inbox_.expect(bytes_of(job.call.dtype, arriving.count), (rank_ + ranks_ - 1) % ranks_, tag::summands);
}

std::span<std::byte> RingSum::bytes(const Job& job, const Part& segment) {
  return {job.data + bytes_of(job.call.dtype, segment.first), bytes_of(job.call.dtype, segment.count)};
}

}  // namespace plexaura

#pragma once

#include <cstdint>

#include "distributed/node/reduce.h"
#include "distributed/sums/sum_algorithm.h"
#include "distributed/wire/inbox.h"
#include "distributed/wire/outbox.h"

namespace plexaura {

// `ring`: each rank receives only from the rank before it and sends only to the rank after it. The sum of a
// part starts at the rank after the part's owner and goes once around the ring, and each rank adds its
// summand. So each part is added in another order of ranks.
class RingSum final : public SumAlgorithm {
 public:
  explicit RingSum(const SumMeans& means);

  bool keeps_order() const override { return false; }
  void reduce_scatter(const CallSignature& call, std::byte* data) override { run({call, data, true, false}); }
  void all_gather(const CallSignature& call, std::byte* data) override { run({call, data, false, true}); }
  void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> /*windows*/) override {
    run({call, data, true, true});
  }

 private:
  struct Job {
    const CallSignature& call;
    std::byte* data;
    bool reduces;
    bool gathers;
  };
  // A range of elements of each part that is sent around the ring together. Several rounds are under way at
  // the same time.
  struct Round {
    std::int64_t first;
    std::int64_t longest;
  };

  void run(const Job& job);
  void begin(const Job& job, const Round& round);
  void step(const Job& job, const Round& round, int number);
  int steps(const Job& job) const { return (ranks_ - 1) * (job.reduces && job.gathers ? 2 : 1); }
  int arriving_part(const Job& job, int step) const;
  Part segment(const Job& job, const Round& round, int part) const;
  void expect(const Job& job, const Round& round, int step);
  static std::span<std::byte> bytes(const Job& job, const Part& segment);

  SumMeans means_;
  int ranks_;
  int rank_;
  Inbox inbox_;
  Outbox outbox_;
};

}  // namespace plexaura

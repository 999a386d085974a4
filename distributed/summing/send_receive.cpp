#include "distributed/summing/send_receive.h"

#include "distributed/exchange/bucket_name.h"
#include "distributed/wire/tags.h"

namespace plexaura {

namespace {

constexpr std::int64_t no_step = 0;
// The longest time that the server waits for the next step. Validation and checkpoints may take place before
// it. If a rank is lost meanwhile, the server learns of it earlier.
constexpr double step_patience_seconds = 86'400;

int lowest_but(int server) { return server == 0 ? 1 : 0; }

}  // namespace

SendReceive::SendReceive(Communicator& communicator, int server)
    : BucketSum(communicator), server_(server), sum_(communicator, server, false) {}

StrategyParts SendReceive::parts() {
  StrategyParts parts = BucketSum::parts();
  if (communicator().rank() == server_) parts.server = this;
  return parts;
}

// Sends the server the number of the next step, or `no_step` at the end. Does nothing on ranks other than the
// lowest one that trains.
void SendReceive::announce(std::int64_t step) {
  if (communicator().rank() != lowest_but(server_)) return;
  communicator().send({.rank = server_, .tag = tag::steps_of_server}, std::as_bytes(std::span(&step, 1)),
                      "the number of the next step");
}

std::int64_t SendReceive::hear_step() {
  std::int64_t step = no_step;
  communicator().receive({lowest_but(server_), tag::steps_of_server, step_patience_seconds},
                         std::as_writable_bytes(std::span(&step, 1)), "the number of the next step");
  return step;
}

// Sums a bucket by the server. The server waits up to `step_patience_seconds` for a step, and then with the
// communicator's deadline for each bucket. The step is announced when its first bucket is computed.
void SendReceive::sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients,
                      std::string_view what) {
  if (bucket == 0) announce(border().step());
  sum_.sum(dtype, gradients, what);
}

void SendReceive::end() { announce(no_step); }

void SendReceive::serve(WeightsImmigration& border) {
  for (std::int64_t step = hear_step(); step != no_step; step = hear_step())
    for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket)
      sum_.sum(border.buckets()[bucket].dtype, border.gradients(bucket), BucketName(bucket, step));
}

}  // namespace plexaura

#include "distributed/summing/bucket_sum.h"

#include <array>
#include <fmt/format.h>

#include "core/base/profile.h"
#include "distributed/exchange/bucket_name.h"
#include "distributed/node/reduce.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

void BucketSum::begin(WeightsImmigration& border) {
  for (const Bucket& bucket : border.buckets()) check_summable(bucket.dtype);
  border_ = &border;
  final_.assign(border.buckets().size(), nullptr);
  bytes_ = parameter_bytes(border);
}

void BucketSum::gradients_ready(std::size_t bucket, Event& final) {
  final_[bucket] = &final;
  if (bucket > 0) return;
  step_ = border_->step();
  shards_before_ = border_->shards_before();
}

UpdateAnswer BucketSum::before_update(std::size_t bucket) {
  final_[bucket]->wait();
  add_own_shards(bucket);
  const std::span<std::byte> gradients = border_->gradients(bucket);
  const ProfileSpan span(border_->profile(), "exchange", "communication", bucket, gradients.size());
  const ExchangeMeter::Exchange exchange(meter_, bytes_[bucket]);
  sum(bucket, border_->buckets()[bucket].dtype, gradients, BucketName(bucket, step_));
  return {};
}

// Adds the shards of this rank, which together are one block of the sum over all ranks.
void BucketSum::add_own_shards(std::size_t bucket) {
  if (shards_before_ == 0) return;
  const std::span<std::byte> last = border_->gradients(bucket);
  const DType dtype = border_->buckets()[bucket].dtype;
  shards_.clear();
  for (std::size_t i = 0; i < shards_before_; ++i) shards_.push_back(border_->shard(i, bucket).data());
  shards_.push_back(last.data());
  add_in_order(dtype, as_shards(shards_), static_cast<std::int64_t>(last.size() / size_of(dtype)),
               std::span(&shards_.back(), 1));
}

void BucketSum::agree() {
  std::array<char, 64> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), "the update of step {}", border_->step()).out;
  const ExchangeMeter::Exchange exchange(meter_, 0);
  communicator_.barrier({text.data(), static_cast<std::size_t>(end - text.data())});
}

}  // namespace plexaura

#include "distributed/strategies/bucket_sum.h"

#include <array>
#include <fmt/format.h>

#include "distributed/group/reduce.h"

namespace plexaura {

void BucketSum::begin(WeightsImmigration& border) {
  for (const Bucket& bucket : border.buckets()) check_summable(bucket.dtype);
  border_ = &border;
  final_.assign(border.buckets().size(), nullptr);
}

UpdateAnswer BucketSum::before_update(std::size_t bucket) {
  std::array<char, 64> text;  // no string, for a step allocates nothing
  const auto end =
      fmt::format_to_n(text.data(), text.size(), "bucket {} of step {}", bucket, border_->step()).out;
  final_[bucket]->wait();
  sum(border_->buckets()[bucket].dtype, border_->gradients(bucket),
      {text.data(), static_cast<std::size_t>(end - text.data())});
  return {};
}

UpdateAnswer::Kind BucketSum::agree() {
  std::array<char, 64> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), "the update of step {}", border_->step()).out;
  communicator_.barrier({text.data(), static_cast<std::size_t>(end - text.data())});
  return UpdateAnswer::Kind::ready;
}

}  // namespace plexaura

#include "distributed/summing/compressed_all_reduce.h"

#include <fmt/format.h>
#include <string_view>

#include "core/base/error.h"
#include "distributed/exchange/arena_state.h"

namespace plexaura {
namespace {

constexpr std::string_view owed_prefix = "owed.";

}  // namespace

StrategyParts CompressedAllReduce::parts() {
  StrategyParts parts = BucketSum::parts();
  parts.state = this;
  return parts;
}

void CompressedAllReduce::begin(WeightsImmigration& border) {
  BucketSum::begin(border);
  const Placement& placement = border.placement();
  if (const DType dtype = placement.dtype(ArenaKind::gradient); dtype != DType::float32)
    throw UserError(fmt::format(
        "distributed.compression compresses gradients of float32, not {}; set it to none", name_of(dtype)));
  owed_ = Tensor({DType::float32, Shape{placement.count(ParameterRole::trainable)}});
  compression_->begin(placement, border.buckets());
}

void CompressedAllReduce::sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients,
                              std::string_view what) {
  const Bucket& slice = border().buckets()[bucket];
  if (is_last(bucket)) return communicator().sum(dtype, gradients.data(), slice.count, what);
  const std::span<float> values(reinterpret_cast<float*>(gradients.data()),
                                static_cast<std::size_t>(slice.count));
  const std::span<float> owed =
      owed_.as<float>().subspan(static_cast<std::size_t>(slice.offset), values.size());
  for (std::size_t i = 0; i < owed.size(); ++i) owed[i] += values[i];
  const std::int64_t sent_before = compression_->bytes_sent();
  compression_->exchange(bucket, owed, values, what);
  meter().add_sent(compression_->bytes_sent() - sent_before);
}

std::vector<StrategyState> CompressedAllReduce::state() const {
  std::vector<StrategyState> state;
  keep_arena(border().placement(), owed_, owed_prefix, true, state);
  compression_->keep(state);
  return state;
}

void CompressedAllReduce::take_state(std::vector<StrategyState> state) {
  for (const StrategyState& part : state) {
    take_arena(border().placement(), owed_, owed_prefix, part);
    compression_->take(part);
  }
}

}  // namespace plexaura

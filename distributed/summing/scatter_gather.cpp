#include "distributed/summing/scatter_gather.h"

#include <array>
#include <fmt/format.h>

namespace plexaura {

namespace {

constexpr int root = 0;

// Returns the bytes of trainable parameters and buffers, which lie before the frozen parameters.
std::size_t bytes_of_moving(const Placement& placement) {
  return static_cast<std::size_t>(placement.bytes_before(
      ArenaKind::value, placement.count(ParameterRole::trainable) + placement.count(ParameterRole::buffer)));
}

}  // namespace

ScatterGather::ScatterGather(Communicator& communicator)
    : BucketSum(communicator),
      sum_(communicator, root, true),
      courier_(communicator.mailbox("the samples of all ranks")) {}

StrategyParts ScatterGather::parts() {
  StrategyParts parts = BucketSum::parts();
  parts.weights = this;
  parts.courier = &courier_;
  parts.realigns_weights = true;
  return parts;
}

void ScatterGather::begin(WeightsImmigration& border) {
  BucketSum::begin(border);
  weight_bytes_ = communicator().rank() == root ? weight_bytes(border) : 0;
}

UpdateAnswer ScatterGather::before_update(std::size_t bucket) {
  if (communicator().rank() == root) return BucketSum::before_update(bucket);
  for (std::size_t each = 0; each < border().buckets().size(); ++each) BucketSum::before_update(each);
  return {.skip = true};
}

// Gathers a bucket on the root. The last bucket is summed on all ranks, because all need the loss and the
// counts in it.
void ScatterGather::sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients,
                        std::string_view what) {
  if (is_last(bucket))
    sum_.sum(dtype, gradients, what);
  else
    sum_.gather(dtype, gradients, what);
}

void ScatterGather::after_update() {
  std::array<char, 64> text;  // text of the call's name; not a std::string, so that a step allocates nothing
  const auto end =
      fmt::format_to_n(text.data(), text.size(), "the weights after step {}", border().step()).out;
  const std::span<std::byte> values = border().fetch_values().first(bytes_of_moving(border().placement()));
  {
    const ExchangeMeter::Exchange exchange(meter(), weight_bytes_);
    communicator().broadcast(values.data(), values.size(), root,
                             {text.data(), static_cast<std::size_t>(end - text.data())});
  }
  if (communicator().rank() != root) border().store_values();
}

}  // namespace plexaura

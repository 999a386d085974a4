#include "distributed/summing/overlapped.h"

#include <fmt/format.h>
#include <system_error>

#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/exchange/bucket_name.h"

namespace plexaura {

Overlapped::Overlapped(std::unique_ptr<BucketSum> inner, Communicator& exchange, With with)
    : StrategyDecorator(*inner), inner_(std::move(inner)), exchange_(exchange), with_(with) {
  try {
    thread_ = std::make_unique<ExchangeThread>(
        [this](std::size_t bucket) { inner_->before_update(bucket); },
        [this](std::size_t place, std::size_t begun) { return bucket_at(place, begun); });
  } catch (const std::system_error& error) {
    throw DeviceError(
        fmt::format("cannot start the thread that exchanges gradients: {}; set distributed.overlap to off",
                    error.what()));
  }
}

StrategyParts Overlapped::parts() {
  StrategyParts parts = inner_->parts();
  parts.gradients = this;
  parts.updates_late = with_ == With::both;
  return parts;
}

void Overlapped::begin(WeightsImmigration& border) {
  buckets_ = border.buckets().size();
  if (with_ == With::both) order_.emplace(exchange_, buckets_);
  StrategyDecorator::begin(border);
}

// Returns the bucket to exchange as number `place`. Called on the exchange thread.
std::size_t Overlapped::bucket_at(std::size_t place, std::size_t begun) {
  if (!order_) return place;
  if (place == 0) final_ = 0;
  while (final_ < begun && inner_->is_final(final_)) ++final_;
  return order_->bucket(place, final_, in_order_, inner_->step());
}

void Overlapped::note_asked(std::size_t bucket) {
  if (std::exchange(is_first_, false)) in_order_ = bucket + 1 != buckets_;
}

void Overlapped::gradients_ready(std::size_t bucket, Event& final) {
  if (bucket == 0) is_first_ = true;
  inner_->gradients_ready(bucket, final);
  thread_->begin(bucket);
}

UpdateAnswer Overlapped::before_update(std::size_t bucket) {
  note_asked(bucket);
  const BucketName name(bucket, inner_->step());
  const ExchangeMeter::Wait wait(inner_->meter());
  const EventSpan span(EventKind::wait, name);
  thread_->await(bucket);
  return {};
}

void Overlapped::agree() {
  const ExchangeMeter::Wait wait(inner_->meter());
  inner_->agree();
}

void Overlapped::give_up() noexcept { plexaura::give_up(thread_, exchange_); }

}  // namespace plexaura

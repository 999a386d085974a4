#include "distributed/strategies/overlapped.h"

#include <fmt/format.h>
#include <system_error>

#include "core/error.h"
#include "core/events.h"
#include "distributed/strategies/bucket_name.h"

namespace plexaura {

Overlapped::Overlapped(std::unique_ptr<BucketSum> inner, Communicator& exchange)
    : inner_(std::move(inner)), exchange_(exchange) {
  try {
    thread_ = std::make_unique<ExchangeThread>([this](std::size_t bucket) { inner_->before_update(bucket); });
  } catch (const std::system_error& error) {
    throw DeviceError(
        fmt::format("cannot start the thread that exchanges gradients: {}; set distributed.overlap to off",
                    error.what()));
  }
}

void Overlapped::begin(WeightsImmigration& border) {
  border_ = &border;
  inner_->begin(border);
}

void Overlapped::gradients_ready(std::size_t bucket, Event& final) {
  inner_->gradients_ready(bucket, final);
  thread_->begin(bucket);
}

UpdateAnswer Overlapped::before_update(std::size_t bucket) {
  const BucketName name(bucket, border_->step());
  const ExchangeMeter::Wait wait(inner_->meter());
  const EventSpan span(EventKind::wait, name);
  thread_->await(bucket);
  return {};
}

UpdateAnswer::Kind Overlapped::agree() {
  const ExchangeMeter::Wait wait(inner_->meter());
  return inner_->agree();
}

void Overlapped::give_up() noexcept { plexaura::give_up(thread_, exchange_); }

}  // namespace plexaura

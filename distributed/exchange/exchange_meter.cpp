#include "distributed/exchange/exchange_meter.h"

#include <utility>

namespace plexaura {

ExchangeMeter::Exchange::Exchange(ExchangeMeter& meter, std::int64_t bytes)
    : meter_(meter), bytes_(bytes), sent_before_(meter.sent_so_far()) {
  const std::lock_guard lock(meter_.mutex_);
  meter_.began_ = meter_.clock_();
}

ExchangeMeter::Exchange::~Exchange() {
  const std::lock_guard lock(meter_.mutex_);
  meter_.seconds_ += meter_.clock_() - *std::exchange(meter_.began_, std::nullopt);
  meter_.bytes_ += bytes_;
  meter_.has_exchanged_ = meter_.ranks_.size() > 1;
  meter_.sent_bytes_ += meter_.sent_so_far() - sent_before_;
}

void ExchangeMeter::add_sent(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  sent_bytes_ += bytes;
}

ExchangeMeter::Wait::~Wait() {
  const double now = meter_.seconds_so_far();
  const std::lock_guard lock(meter_.mutex_);
  meter_.waited_seconds_ += now - before_;
}

double ExchangeMeter::seconds_so_far() {
  const std::lock_guard lock(mutex_);
  return began_ ? seconds_ + (clock_() - *began_) : seconds_;
}

std::optional<ExchangeRecord> ExchangeMeter::take(bool overlaps) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_exchanged_, false)) return std::nullopt;
  ExchangeRecord record{
      .bytes = std::exchange(bytes_, 0), .seconds = std::exchange(seconds_, 0), .overlaps = overlaps};
  const double waited = std::exchange(waited_seconds_, 0);
  record.waited_seconds = overlaps ? waited : record.seconds;
  const std::int64_t sent = std::exchange(sent_bytes_, 0);
  if (ranks_.bytes_sent()) record.sent_bytes = sent;
  return record;
}

std::vector<std::int64_t> parameter_bytes(const WeightsImmigration& border) {
  std::vector<std::int64_t> bytes(border.buckets().size());
  for (const WeightsImmigration::Entry& entry : border.entries())
    if (entry.bucket)
      bytes[*entry.bucket] += entry.type.shape.elements() *
                              static_cast<std::int64_t>(size_of(border.buckets()[*entry.bucket].dtype));
  return bytes;
}

std::int64_t weight_bytes(const WeightsImmigration& border) {
  std::int64_t bytes = 0;
  for (const WeightsImmigration::Entry& entry : border.entries())
    if (entry.role != ParameterRole::frozen) bytes += entry.type.bytes();
  return bytes;
}

}  // namespace plexaura

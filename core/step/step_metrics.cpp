#include "core/step/step_metrics.h"

#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::size_t tail_bytes(DType dtype) { return static_cast<std::size_t>(tail_count) * size_of(dtype); }

template <class T>
StepTail widened(const std::byte* data) {
  std::array<T, static_cast<std::size_t>(tail_count)> elements;
  std::memcpy(elements.data(), data, sizeof elements);
  StepTail tail;
  std::copy(elements.begin(), elements.end(), tail.begin());
  return tail;
}

double at(const StepTail& tail, TailSlot slot) { return tail[static_cast<std::size_t>(slot)]; }

}  // namespace

double mean_loss(double sum, double samples, std::optional<double> weight) {
  if (weight && *weight != 0) return sum / *weight;
  return samples > 0 ? sum / samples : 0;
}

StepMetrics metrics_of(const StepTail& tail, bool is_weighted) {
  StepMetrics metrics;
  metrics.samples = at(tail, TailSlot::samples);
  if (is_weighted) metrics.weight = at(tail, weight_slot);
  metrics.loss = mean_loss(at(tail, TailSlot::loss), metrics.samples, metrics.weight);
  metrics.stop = at(tail, TailSlot::stop) > 0;
  metrics.failed = at(tail, TailSlot::failed) > 0;
  for (std::size_t i = 0; i < most_metrics; ++i) metrics.sums[i] = at(tail, metric_slot(i));
  return metrics;
}

StepTail tail_of(const StepMetrics& metrics) {
  StepTail tail{};
  const auto set = [&](TailSlot slot, double value) { tail[static_cast<std::size_t>(slot)] = value; };
  const double divisor = metrics.weight.value_or(0) != 0 ? *metrics.weight : metrics.samples;
  set(TailSlot::loss, metrics.loss * divisor);
  set(TailSlot::samples, metrics.samples);
  set(TailSlot::stop, metrics.stop ? 1 : 0);
  set(TailSlot::failed, metrics.failed ? 1 : 0);
  for (std::size_t i = 0; i < most_metrics; ++i) set(metric_slot(i), metrics.sums[i]);
  if (metrics.weight) set(weight_slot, *metrics.weight);
  return tail;
}

MetricsRing::MetricsRing(Backend& backend, const ParameterStore& store) : backend_(backend), store_(store) {
  for (TailCopy& copy : copies_) {
    copy.tail = backend.allocate(tail_bytes(store.dtype()), MemoryUse::staging);
    copy.copied = backend.make_event();
  }
}

std::uint64_t MetricsRing::push(std::exception_ptr failure) {
  TailCopy& copy = copies_[++pushed_ % copies_.size()];
  copy.failure = std::move(failure);
  const Placement& placement = store_.placement();
  const std::int64_t offset = placement.bytes_before(ArenaKind::gradient, placement.tail_offset());
  backend_.copy(Stream::compute, copy.tail->address(), store_.gradients() + offset,
                tail_bytes(store_.dtype()));
  copy.copied->record(Stream::compute);
  return pushed_;
}

void MetricsRing::add_failure(const std::exception_ptr& late) {
  TailCopy& copy = copies_[pushed_ % copies_.size()];
  if (!copy.failure) copy.failure = late;
}

StepMetrics MetricsRing::read(std::uint64_t number) {
  if (number == 0 || number > pushed_ || number + copies_.size() <= pushed_)
    throw InternalError(fmt::format(
        "the metrics of step {} were requested after {} steps; only the last two are kept", number, pushed_));
  TailCopy& copy = copies_[number % copies_.size()];
  if (copy.failure) std::rethrow_exception(copy.failure);
  copy.copied->wait();
  const std::byte* data = copy.tail->address();
  return metrics_of(store_.dtype() == DType::float64 ? widened<double>(data) : widened<float>(data),
                    is_weighted_);
}

}  // namespace plexaura

#include "core/exchange/weights_immigration.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "core/device/transfer.h"

namespace plexaura {

// The event of the copy of a bucket to staging memory. If the device has failed, wait() still returns, and
// the copy contains zeros. So this rank still takes part in the exchange of all ranks.
class WeightsImmigration::StagedEvent final : public Event {
 public:
  StagedEvent(WeightsImmigration& border, std::size_t bucket, std::unique_ptr<Event> copied)
      : border_(border), bucket_(bucket), copied_(std::move(copied)) {}

  void record(Stream stream) override { copied_->record(stream); }
  void signal() override { copied_->signal(); }
  void reset() override { copied_->reset(); }
  void hold(Stream stream) override { copied_->hold(stream); }
  bool passed() const override {
    if (!copied_->passed()) return false;
    border_.arrive(bucket_, *copied_);
    return true;
  }
  void wait() override { border_.arrive(bucket_, *copied_); }

 private:
  WeightsImmigration& border_;
  std::size_t bucket_;
  std::unique_ptr<Event> copied_;
};

namespace {

// An event that is recorded after sums of devices, and fails with them.
class SumEvent final : public Event {
 public:
  SumEvent(std::unique_ptr<Event> event, const DeviceSums& sums) : event_(std::move(event)), sums_(sums) {}

  void record(Stream stream) override { event_->record(stream); }
  void signal() override { event_->signal(); }
  void reset() override { event_->reset(); }
  void hold(Stream stream) override { event_->hold(stream); }
  bool passed() const override { return event_->passed(); }
  void wait() override {
    event_->wait();
    sums_.check();
  }

 private:
  std::unique_ptr<Event> event_;
  const DeviceSums& sums_;
};

}  // namespace

WeightsImmigration::WeightsImmigration(ParameterStore& store, std::int64_t bucket_bytes, Profile* profile,
                                       bool on_device)
    : store_(store),
      backend_(store.backend()),
      profile_(profile),
      buckets_(make_buckets(store.placement(), bucket_bytes)),
      on_device_(on_device && !store.backend().info().host_memory),
      open_(buckets_.size()),
      arrived_(buckets_.size(), false) {
  Backend& backend = store.backend();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    std::unique_ptr<Event> event = backend.make_event();
    if (!backend.info().host_memory && !on_device_)
      event = std::make_unique<StagedEvent>(*this, i, std::move(event));
    staged_.push_back(std::move(event));
  }
  if (backend.info().host_memory || on_device_) return;
  staging_ = backend.allocate(placement().bytes(ArenaKind::gradient), MemoryUse::staging);
  computed_ = backend.make_event();
  returned_ = backend.make_event();
}

// Copies of the last step may still be unfinished, and wait for a strategy that has given up.
WeightsImmigration::~WeightsImmigration() {
  fail_answers(std::make_exception_ptr(DeviceError("the step was given up")));
  if (backend_.exists()) drain(backend_.get());
}

std::vector<WeightsImmigration::Entry> WeightsImmigration::entries() const {
  std::vector<Entry> entries;
  const auto bytes = [&](const Placement::Entry& placed, ArenaKind arena) {
    return placed.count * static_cast<std::int64_t>(size_of(placement().dtype(arena, placed.role)));
  };
  for (const Placement::Entry& placed : placement().entries) {
    std::optional<std::size_t> bucket;
    for (std::size_t i = 0; i < buckets_.size() && placed.role != ParameterRole::frozen; ++i)
      if (placed.offset >= buckets_[i].offset && placed.offset < buckets_[i].offset + buckets_[i].count)
        bucket = i;
    entries.push_back({placed.name, placed.type, bytes(placed, ArenaKind::value),
                       bucket ? bytes(placed, ArenaKind::gradient) : 0, placed.role, bucket});
  }
  return entries;
}

namespace {

// Address and bytes of each arena of the optimizer's state, and of the loss scale if there is one.
using StateArenas = std::vector<std::pair<Address, std::size_t>>;

StateArenas state_arenas_of(const ParameterStore& store) {
  StateArenas arenas;
  for (std::int64_t i = 0; i < store.states(); ++i)
    arenas.emplace_back(store.state(i), store.placement().bytes(ArenaKind::state));
  if (store.placement().types.scales_loss())
    arenas.emplace_back(store.scaling(), store.placement().bytes(ArenaKind::scaling));
  return arenas;
}

}  // namespace

std::vector<std::byte> WeightsImmigration::emigrate_state() const {
  std::vector<std::byte> state;
  for (const auto& [address, bytes] : state_arenas_of(store_)) {
    state.resize(state.size() + bytes);
    copy_to_host(store_.backend(), state.data() + state.size() - bytes, address, bytes);
  }
  return state;
}

void WeightsImmigration::immigrate_state(std::span<const std::byte> state, const Placement& placement) {
  const StateArenas arenas = state_arenas_of(store_);
  std::size_t all = 0;
  for (const auto& [address, bytes] : arenas) all += bytes;
  if (placement != store_.placement() || state.size() != all)
    throw UserError(fmt::format(
        "the optimizer's state has {} bytes in this placement, and {} of another were given; take only "
        "that of a store with an equal placement and the same optimizer",
        all, state.size()));
  std::size_t begin = 0;
  for (const auto& [address, bytes] : arenas) {
    copy_to_device(store_.backend(), address, state.data() + begin, bytes);
    begin += bytes;
  }
}

std::span<std::byte> WeightsImmigration::fetch_values() {
  const std::size_t bytes = placement().bytes(ArenaKind::value);
  if (store_.backend().info().host_memory) return {store_.values(), bytes};
  if (!values_copy_) values_copy_ = std::make_unique<StagedCopy>(store_.backend(), bytes);
  values_copy_->to_host(store_.values(), bytes);
  return {values_copy_->host(), bytes};
}

void WeightsImmigration::store_values() {
  const std::size_t bytes = placement().bytes(ArenaKind::value);
  if (values_copy_) values_copy_->to_device(store_.values(), bytes);
  store_.update_shadow();
  store_.raise_version();
}

std::size_t WeightsImmigration::byte_offset(std::size_t bucket) const {
  return static_cast<std::size_t>(placement().bytes_before(ArenaKind::gradient, buckets_[bucket].offset));
}

std::size_t WeightsImmigration::byte_count(std::size_t bucket) const {
  return static_cast<std::size_t>(buckets_[bucket].count) * size_of(buckets_[bucket].dtype);
}

std::span<std::byte> WeightsImmigration::gradients(std::size_t bucket) const {
  std::byte* base = staging_ ? staging_->address() : store_.gradients();
  return {base + byte_offset(bucket), byte_count(bucket)};
}

std::span<std::byte> WeightsImmigration::shard(std::size_t index, std::size_t bucket) {
  return std::span(shards_[index]).subspan(byte_offset(bucket), byte_count(bucket));
}

void WeightsImmigration::keep_shard() {
  if (shards_before_ == shards_.size()) shards_.emplace_back(placement().bytes(ArenaKind::gradient));
  std::vector<std::byte>& kept = shards_[shards_before_++];
  copy_to_host(store_.backend(), kept.data(), store_.gradients(), kept.size());
}

Address WeightsImmigration::device_gradients(std::size_t bucket) const {
  return store_.gradients() + byte_offset(bucket);
}

std::unique_ptr<ExchangeEvent> WeightsImmigration::make_event(const DeviceSums& sums) const {
  return std::make_unique<ExchangeEvent>(std::make_unique<SumEvent>(store_.backend().make_event(), sums));
}

void WeightsImmigration::sum_on_device(std::size_t bucket, Event& final, DeviceSums& sums,
                                       ExchangeEvent& done) {
  final.hold(Stream::copy);
  sums.sum(buckets_[bucket].dtype, device_gradients(bucket), buckets_[bucket].count);
  done.record(Stream::copy);
}

void WeightsImmigration::begin_step(const StepPlace& place, bool stop) {
  place_ = place;
  shards_before_ = 0;
  if (!staging_) return;
  const std::lock_guard lock(mutex_);
  stop_ = stop;
  failure_ = nullptr;
}

std::exception_ptr WeightsImmigration::failure() const {
  if (!staging_) return nullptr;
  const std::lock_guard lock(mutex_);
  return failure_;
}

void WeightsImmigration::arrive(std::size_t bucket, Event& copied) {
  std::exception_ptr failure;
  try {
    copied.wait();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = failure;
  if (failure_ && !arrived_[bucket]) blank(bucket);
  arrived_[bucket] = true;
}

// Called after a failure of the device. Sets the gradients of the bucket to zero. The last bucket contains
// the tail: there `failed` becomes 1, and `stop` keeps this rank's request.
void WeightsImmigration::blank(std::size_t bucket) {
  const std::span<std::byte> bytes = gradients(bucket);
  std::ranges::fill(bytes, std::byte{0});
  if (bucket + 1 != buckets_.size()) return;
  const auto set = [&](TailSlot slot, double value) {
    const Tensor element = Tensor::scalar(value).cast(buckets_[bucket].dtype);
    const auto tail = bytes.size() - static_cast<std::size_t>(tail_count) * element.bytes();
    std::memcpy(bytes.data() + tail + static_cast<std::size_t>(slot) * element.bytes(), element.data(),
                element.bytes());
  };
  set(TailSlot::failed, 1);
  set(TailSlot::stop, stop_ ? 1 : 0);
}

void WeightsImmigration::stage_out(std::size_t bucket) {
  if (on_device_) return staged_[bucket]->record(Stream::compute);
  if (!staging_) return staged_[bucket]->signal();
  computed_->record(Stream::compute);
  computed_->hold(Stream::copy);
  store_.backend().copy(Stream::copy, gradients(bucket).data(), device_gradients(bucket), byte_count(bucket));
  staged_[bucket]->record(Stream::copy);
}

Event& WeightsImmigration::staged(std::size_t bucket) {
  if (staging_) {
    const std::lock_guard lock(mutex_);
    arrived_[bucket] = false;
  }
  return *staged_[bucket];
}

void WeightsImmigration::stage_in(std::size_t bucket, const UpdateAnswer& answer) {
  if (!staging_ && !on_device_) return await(bucket, answer);
  open_[bucket] = answer;
  if (!on_device_) return return_copy(bucket);
  if (answer.event != nullptr) answer.event->hold(Stream::compute);
}

void WeightsImmigration::return_copy(std::size_t bucket) {
  const UpdateAnswer& answer = open_[bucket];
  staged_[bucket]->hold(Stream::copy);  // in a recording, the copy to staging memory is on the copy stream
  if (answer.event != nullptr) answer.event->hold(Stream::copy);
  store_.backend().copy(Stream::copy, device_gradients(bucket), gradients(bucket).data(), byte_count(bucket));
  returned_->record(Stream::copy);
  returned_->hold(Stream::compute);
}

void WeightsImmigration::await(std::size_t bucket, const UpdateAnswer& answer) const {
  if (answer.event == nullptr) return;
  if (!answer.event->ends_within(answer.deadline_seconds))
    answer.event->fail(std::make_exception_ptr(DeviceError(fmt::format(
        "bucket {} of step {} was not exchanged within {:.3g} s: the strategy did not signal its event",
        bucket, step(), answer.deadline_seconds))));
  answer.event->wait();
}

void WeightsImmigration::await_answers() {
  try {
    for (std::size_t bucket = 0; bucket < open_.size(); ++bucket)
      await(bucket, std::exchange(open_[bucket], UpdateAnswer{}));
  } catch (...) {
    fail_answers(std::current_exception());
    throw;
  }
}

void WeightsImmigration::fail_answers(const std::exception_ptr& failure) {
  for (UpdateAnswer& answer : open_)
    if (ExchangeEvent* event = std::exchange(answer, UpdateAnswer{}).event; event != nullptr)
      event->fail(failure);
}

}  // namespace plexaura

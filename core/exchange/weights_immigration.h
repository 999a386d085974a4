#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/device/device_sums.h"
#include "core/exchange/exchange_event.h"
#include "core/params/parameter_store.h"

// The border between the engine and the code that aggregates over ranks, which is a Strategy
// (core/exchange/strategy.h). The engine owns weights and gradients. It notifies a strategy when gradients
// are final. The strategy answers when they have been aggregated, and may overwrite weights.

namespace plexaura {

class Profile;
class StagedCopy;

struct UpdateAnswer {
  // True: nothing is updated, because the weights arrive in after_update instead. The step counts.
  bool skip = false;
  // The update of this bucket starts after this event. Null: it starts at once. The step fails if the event
  // fails, and if it is neither signalled nor recorded within `deadline_seconds`. On a device with its own memory
  // the update may have begun by then.
  ExchangeEvent* event = nullptr;
  double deadline_seconds = 60;
};

// The current step, and this rank's part of it.
struct StepPlace {
  // Number of the step, from 1; counts the steps before a resume; 0 before the first step.
  std::int64_t number = 0;
  std::int64_t epoch = 0;
  bool ends_epoch = false;   // true if all ranks end the epoch with this step
  std::int64_t samples = 0;  // number of this rank's samples, over its micro-batches
};

// The engine's side of the border: what a strategy may read and write, and the buckets in which gradients
// travel.
class PLEXAURA_API WeightsImmigration {
 public:
  // The store must be placed. Buckets are slices of its gradient arena; the last one holds buffers and tail.
  // A strategy may add the work of its threads to `profile`; null: there is no profile. `on_device`: see
  // StrategyParts.
  WeightsImmigration(ParameterStore& store, std::int64_t bucket_bytes, Profile* profile = nullptr,
                     bool on_device = false);
  ~WeightsImmigration();
  WeightsImmigration(const WeightsImmigration&) = delete;
  WeightsImmigration& operator=(const WeightsImmigration&) = delete;

  struct Entry {
    std::string name;
    TensorType type;
    std::int64_t value_bytes;     // bytes in the value arena, padding included
    std::int64_t gradient_bytes;  // bytes in the gradient arena, padding included; 0 for a frozen parameter
    ParameterRole role;
    std::optional<std::size_t> bucket;
  };
  std::vector<Entry> entries() const;

  // Read and write one tensor in its logical layout, whatever its physical layout is. Legal before the first
  // step, and in after_update, show_weights and take_weights_back.
  Tensor emigrate(std::string_view name) const { return store_.read(name); }
  void immigrate(std::string_view name, const Tensor& value) { store_.write(name, value); }

  const Placement& placement() const { return store_.placement(); }

  // Returns the whole value arena in host memory: the arena itself if the backend's memory is host memory,
  // otherwise a copy of its current contents, which is at the same address in each call. store_values()
  // copies changes back to the weights. Legal where immigrate() is. Only the first call allocates.
  std::span<std::byte> fetch_values();
  void store_values();

  // Read and write the bytes that an update reads beside values and gradients: the optimizer's state, and the
  // loss scale if there is one. Legal where immigrate() is. Throws UserError for bytes of a store with
  // another placement.
  std::vector<std::byte> emigrate_state() const;
  void immigrate_state(std::span<const std::byte> state, const Placement& placement);

  // Buckets in the order of the placement, in which every program announces them on every rank.
  std::span<const Bucket> buckets() const { return buckets_; }
  // Makes an event for a strategy's answers. Once passed, it stays passed until the strategy calls reset(),
  // in before_update() of each step that uses the event again.
  std::unique_ptr<ExchangeEvent> make_event() const {
    return std::make_unique<ExchangeEvent>(store_.backend().make_event());
  }

  // Makes an event that passes after a sum of sum_on_device(), and fails if the sum fails. `sums` must outlive
  // it.
  std::unique_ptr<ExchangeEvent> make_event(const DeviceSums& sums) const;

  // Returns the current step. A strategy that acts every k steps uses its number, so that a resumed run
  // continues as if it had not stopped.
  const StepPlace& place() const { return place_; }
  // Returns the number of the current step, for messages.
  std::int64_t step() const { return place_.number; }

  Profile* profile() const { return profile_; }

  // The elements of a bucket in host memory: the arena itself if the backend's memory is host memory,
  // otherwise a staged copy. The engine fills the copy before the event of gradients_ready passes, and copies
  // it back after the answer to before_update. If the device has failed, which is noticed late, the copy
  // holds zeros, and the tail has `failed` set. With StrategyParts::on_device the host cannot read the
  // gradients.
  std::span<std::byte> gradients(std::size_t bucket) const;
  // Returns the elements of a bucket of an earlier shard of this step: see StepInputs::shards. Shards are in order. The
  // sum of all earlier shards and gradients() is this rank's part.
  std::span<std::byte> shard(std::size_t index, std::size_t bucket);
  std::size_t shards_before() const { return shards_before_; }
  // Returns the device address of the elements of a bucket, for libraries that work in device memory.
  Address device_gradients(std::size_t bucket) const;
  // With StrategyParts::on_device: enqueues the sum of a bucket over ranks, in device memory, after `final`,
  // the event of gradients_ready. `done`, which was made for these sums, passes after it. Returns at once.
  void sum_on_device(std::size_t bucket, Event& final, DeviceSums& sums, ExchangeEvent& done);

  // For the engine: begins a step. `stop` is written to the tail if the rank's own tail is lost.
  void begin_step(const StepPlace& place, bool stop);
  // For the engine: saves the arena's gradients as those of one shard, before another shard of the same step
  // overwrites them.
  void keep_shard();
  // For the engine: returns the failure of this rank's device that was found while waiting for a bucket of
  // this step. Null: there was none.
  std::exception_ptr failure() const;
  // For the engine: enqueues the copy of a bucket to staging memory, if there is any. Within
  // Backend::record() the copy becomes part of the recording.
  void stage_out(std::size_t bucket);
  // For the engine: returns the event that a strategy gets for a bucket. Called in each step after
  // stage_out(). The event passes when the bucket, or its copy in staging memory, is final.
  Event& staged(std::size_t bucket);
  // For the engine. In host memory, waits for the answer. Otherwise lets the device wait for its event, and then
  // copy the bucket back if it was copied to the host.
  void stage_in(std::size_t bucket, const UpdateAnswer& answer = {});
  // For the engine. await() waits for the event of an answer until its deadline. await_answers() does so for all events
  // that stage_in() has not waited for. If one event fails, the others are failed too, so that the device waits for none
  // of them.
  void await(std::size_t bucket, const UpdateAnswer& answer) const;
  void await_answers();

 private:
  class StagedEvent;
  void return_copy(std::size_t bucket);
  void fail_answers(const std::exception_ptr& failure);
  void arrive(std::size_t bucket, Event& copied);
  void blank(std::size_t bucket);
  std::size_t byte_offset(std::size_t bucket) const;
  std::size_t byte_count(std::size_t bucket) const;

  ParameterStore& store_;
  BackendUse backend_;
  Profile* profile_;
  std::vector<Bucket> buckets_;
  StepPlace place_;
  // Staging memory; null if the arena is host memory, or if buckets stay on the device.
  std::unique_ptr<Memory> staging_;
  bool on_device_;  // true if buckets stay on the device
  std::vector<std::unique_ptr<Event>> staged_;
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Event> returned_;
  std::vector<UpdateAnswer> open_;  // for each bucket: the answer whose event the device waits for
  std::unique_ptr<StagedCopy> values_copy_;
  // Copies of the whole gradient arena on the host, one for each shard but the last one of a step.
  std::vector<std::vector<std::byte>> shards_;
  std::size_t shards_before_ = 0;
  mutable std::mutex mutex_;  // guards the members below, since any thread may wait for events
  std::exception_ptr failure_;
  bool stop_ = false;
  std::vector<bool> arrived_;  // for each bucket: true if a thread has waited for it since it was staged
};

}  // namespace plexaura

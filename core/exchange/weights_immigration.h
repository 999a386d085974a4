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
#include "core/exchange/courier.h"
#include "core/exchange/dealer.h"
#include "core/exchange/exchange_event.h"
#include "core/exchange/exchange_record.h"
#include "core/params/parameter_store.h"

// The border between the engine and the code that aggregates over ranks. The engine owns weights and gradients. It tells a
// Strategy when gradients are final. The strategy says when they have been aggregated, and may overwrite weights.

namespace plexaura {

class Profile;
class StagedCopy;

struct UpdateAnswer {
  // Nothing is updated, because the weights arrive in after_update instead. The step counts.
  bool skip = false;
  // The update of this bucket starts after this event. Null: it starts at once. The step fails if the event fails, and if it has
  // not passed after `deadline_seconds`. On a device with its own memory the update may have begun by then.
  ExchangeEvent* event = nullptr;
  double deadline_seconds = 60;
};

// The step under way, and this rank's part of it.
struct StepPlace {
  std::int64_t number = 0;  // from 1, resumed runs included; 0 before the first
  std::int64_t epoch = 0;
  bool ends_epoch = false;   // weights are validated and saved after it
  std::int64_t samples = 0;  // of this rank, over its micro-batches
};

// The engine's side of the border: what a strategy may read and write, and the buckets in which gradients travel.
class PLEXAURA_API WeightsImmigration {
 public:
  // The store must be placed. Buckets are slices of its gradient arena, buffers and tail the last one.
  // A strategy may add the work of its threads to `profile`; null: there is no profile. `on_device`: see HookSet.
  WeightsImmigration(ParameterStore& store, std::int64_t bucket_bytes, Profile* profile = nullptr,
                     bool on_device = false);
  ~WeightsImmigration();
  WeightsImmigration(const WeightsImmigration&) = delete;
  WeightsImmigration& operator=(const WeightsImmigration&) = delete;

  struct Entry {
    std::string name;
    TensorType type;
    std::int64_t value_bytes;     // physical, padding included
    std::int64_t gradient_bytes;  // 0 for a frozen parameter
    ParameterRole role;
    std::optional<std::size_t> bucket;
  };
  std::vector<Entry> entries() const;

  // Reads and writes one tensor in its logical layout, whatever its physical layout is. Legal before step one, and in
  // after_update, show_weights and take_weights_back.
  Tensor emigrate(std::string_view name) const { return store_.read(name); }
  void immigrate(std::string_view name, const Tensor& value) { store_.write(name, value); }

  const Placement& placement() const { return store_.placement(); }

  // The whole value arena in memory of the host: the arena itself if the backend's memory is host memory, else a copy of its
  // present contents, which is the same memory at each call. store_values() makes what was written there the weights. Legal
  // where immigrate() is. Allocates at the first call only.
  std::span<std::byte> fetch_values();
  void store_values();

  // The physical bytes that an update reads beside values and gradients: the optimizer's state, and the loss scale if there is
  // one. Legal where immigrate() is. Throws UserError for bytes of a store with another placement.
  std::vector<std::byte> emigrate_state() const;
  void immigrate_state(std::span<const std::byte> state, const Placement& placement);

  // Buckets in the order of the placement, in which every program announces them on every rank.
  std::span<const Bucket> buckets() const { return buckets_; }
  // Makes an event for a strategy to answer with. Once passed it stays so until the strategy calls reset(), in before_update of
  // each step that uses the event again.
  std::unique_ptr<ExchangeEvent> make_event() const {
    return std::make_unique<ExchangeEvent>(store_.backend().make_event());
  }

  // Makes an event that is recorded after sums, and fails if they fail. The sums must outlive it.
  std::unique_ptr<ExchangeEvent> make_event(const DeviceSums& sums) const;

  // The present step. A strategy that acts every k steps counts by its number, so that a resumed run goes on as if it had never
  // stopped.
  const StepPlace& place() const { return place_; }
  // Its number, which messages name.
  std::int64_t step() const { return place_.number; }

  Profile* profile() const { return profile_; }

  // The elements of a bucket in memory of the host: the arena itself if the backend's memory is host memory, else a staged copy.
  // The engine fills the copy before the event of gradients_ready passes, and takes it back after the answer to before_update. If
  // the device has failed, which shows late, the copy holds zeros, and `failed` in the tail. With HookSet::on_device the host
  // cannot read the gradients.
  std::span<std::byte> gradients(std::size_t bucket) const;
  // The same bucket of an earlier shard of this step, in order: see StepInputs::shards. The sum of these and gradients() is this
  // rank's part.
  std::span<std::byte> shard(std::size_t index, std::size_t bucket);
  std::size_t shards_before() const { return shards_before_; }
  // The same elements in device memory, for libraries that work there.
  Address device_gradients(std::size_t bucket) const;
  // With HookSet::on_device: enqueues the sum of a bucket over ranks, in device memory, after `final`, the event of
  // gradients_ready. `done`, which was made for these sums, passes after it. Returns at once.
  void sum_on_device(std::size_t bucket, Event& final, DeviceSums& sums, ExchangeEvent& done);

  // For the engine, when a step begins. `stop` is written to the tail if the rank's own tail is lost.
  void begin_step(const StepPlace& place, bool stop);
  // For the engine: keeps the gradients in the arena as those of a shard, after which another one of this step follows.
  void keep_shard();
  // For the engine. The failure of this rank's device that a wait for a bucket of this step met. Null: none.
  std::exception_ptr failure() const;
  // For the engine. Enqueues the copy out of a bucket, or is captured in a recording that does.
  void stage_out(std::size_t bucket);
  // For the engine, in each step after stage_out(), before a strategy gets the event. The event passes when the copy is final.
  Event& staged(std::size_t bucket);
  // For the engine. Enqueues the copy of a bucket back to the device, after the event of the answer.
  void stage_in(std::size_t bucket, const UpdateAnswer& answer = {});
  // For the engine: waits for the event of an answer until its deadline, or for all events that stage_in() has left open. If one
  // fails, the others are failed with it, so that the device waits for none of them.
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
  std::unique_ptr<Memory> staging_;  // null where the arena is host memory, or buckets stay on the device
  bool on_device_;                   // they do
  std::vector<std::unique_ptr<Event>> staged_;
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Event> returned_;
  std::vector<UpdateAnswer> open_;  // per bucket: the answer whose event the device waits for
  std::unique_ptr<StagedCopy> values_copy_;
  std::vector<std::vector<std::byte>> shards_;  // whole arenas, on the host
  std::size_t shards_before_ = 0;
  mutable std::mutex mutex_;  // of the members that follow: any thread may wait for events
  std::exception_ptr failure_;
  bool stop_ = false;
  std::vector<bool> arrived_;  // per bucket: a thread has waited for it since it was staged
};

enum class RankRole : std::uint8_t { trains, serves };

// The functions of a strategy that the engine calls in a step. A hook that is not declared costs nothing.
struct HookSet {
  bool gradients_ready = false;
  bool before_update = false;
  bool agree = false;  // no bucket is updated before all have been exchanged
  bool after_update = false;
  bool show_weights = false;  // validation and checkpoints use other weights than training
  // Buckets stay in device memory, where sum_on_device() sums them: no copy is made, and only this rank learns of a failure of its
  // device. Changes nothing if the backend's memory is host memory.
  bool on_device = false;
  // With before_update, if no answer skips the update: a bucket is updated as late as the next step needs it, while others are
  // still exchanged. before_update is called for the last bucket at the end of the step. For each other bucket it is called at the
  // first instruction of the next step that reads its weights or writes its gradients, or before the weights are validated, saved
  // or shown. The order is not that of the placement, and not the same on all ranks.
  bool late_update = false;
};

// Which mean the gradients, and changes of buffers, belong to.
enum class GradientScope : std::uint8_t {
  global,  // this rank's share of the mean over the whole batch of the step: the strategy sums all buckets, with the tail
  local  // the mean over this rank's own samples: the trainer sums the tails, those of several steps at once
};

// A tensor of a strategy that a checkpoint keeps.
struct StrategyState {
  std::string name;  // see is_parameter_name()
  Tensor value;
  bool of_rank = false;  // each rank has its own; else all ranks get that of rank 0
};

// How ranks work together. Each rank has one object. The thread that trains calls it, never concurrently; only Overlapped calls
// before_update of the strategy within it from a thread of its own.
class PLEXAURA_API Strategy {
 public:
  virtual ~Strategy();

  virtual HookSet hooks() const = 0;
  // A rank that serves gets no data and no programs: only serve() is called.
  virtual RankRole role() const { return RankRole::trains; }
  // The same at every call, and on all ranks.
  virtual GradientScope scope() const { return GradientScope::global; }

  // Whether all ranks get the weights of one rank from time to time, so that they need not round alike.
  virtual bool realigns_weights() const { return false; }

  // Null: the ranks make each step together. Else, with local scope, each rank makes its steps without the others, from the parts of
  // batches that the dealer gives it, and no step is agreed on or summed. When nothing more is dealt, all ranks come to
  // show_weights(), which brings them the same weights. The strategy owns the dealer. The number of a step is its place in the run
  // then, and a rank may make several steps with one number, or none.
  virtual Dealer* dealer() { return nullptr; }

  // Provides memory for the arena of gradients, such as a window that ranks share. Null: the engine allocates it. Called on all
  // ranks at the same point, and only if the backend's memory is host memory. The store keeps the object, perhaps for longer than
  // the strategy lives.
  virtual std::unique_ptr<Memory> gradient_memory(std::size_t bytes);

  // Null: each rank reads its own samples. Else rank 0 reads the samples of all ranks, each step in as many parts as ranks train,
  // and the courier brings them to the other ranks, which need no data. The strategy owns the courier.
  virtual Courier* courier() { return nullptr; }

  // Once, before step one, when everything is placed. May call all ranks.
  virtual void begin(WeightsImmigration&) {}

  // During backward, in the order of the placement: the bucket is final when the event has passed. Must not block. If the model
  // itself calls all ranks in each step, this is called after backward.
  virtual void gradients_ready(std::size_t /*bucket*/, Event& /*final*/) {}

  // A step has thrown, or a rank was lost, and this strategy makes no other step: when this returns, no thread of it uses the
  // border or calls other ranks.
  virtual void give_up() noexcept {}

  // Before the update of each bucket, in the order of the placement unless the hook late_update is declared. `skip` is legal for
  // bucket 0 only: a strategy that may answer it exchanges all buckets first. Some ranks may skip an update that others make.
  virtual UpdateAnswer before_update(std::size_t /*bucket*/) { return {}; }

  // Once in a step, if it is declared: before_update has answered for all buckets, their events have passed, and no weight has
  // changed. An exception from here or from before leaves weights, buffers and the optimizer's state as they were after the last
  // step. Later a step cannot be given up any more.
  virtual void agree() {}

  // After the update of all buckets: weights may be overwritten.
  virtual void after_update() {}

  // Before validation, a checkpoint or the end of the run: may overwrite the weights by those to be validated and saved. May call
  // all ranks.
  virtual void show_weights() {}
  // After that, before the next step if there is one: puts back the weights that train.
  virtual void take_weights_back() {}

  // With local scope: whether an exchange goes on after the last step. The same on all ranks. The trainer delays its own sums
  // meanwhile, up to a limit.
  virtual bool is_exchanging() const { return false; }

  // The tensors that a checkpoint keeps beside weights and the optimizer's state. Called on all ranks between steps and, with local
  // scope, on the ranks that are left when others were lost in a step. Must not call all ranks, because some may fail in it.
  virtual std::vector<StrategyState> state() const { return {}; }
  // Gets the tensors of a checkpoint from which the run was resumed, between begin() and the first step. Tensors of ranks come back
  // if the number of ranks is the same, or with local scope has grown, and otherwise not at all.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): a strategy with state keeps it
  virtual void take_state(std::vector<StrategyState> /*state*/) {}

  // With local scope, after ranks were lost: called once, when the ranks that are left have called begin() and each has taken the
  // whole state() of its former strategy. They may have reached different points of an exchange: here all of them complete it, or
  // none. WeightsImmigration::place() is the last step that any of them has made. May call all ranks.
  virtual void settle() {}

  // What this rank has exchanged since the last call. Called between steps. Empty if the strategy does not count it, or if nothing
  // was exchanged.
  virtual std::optional<ExchangeRecord> take_exchange_record() { return std::nullopt; }

  // Once, after the last step of a run that ends without an error. Must not change weights. A client tells its server here that it
  // has ended.
  virtual void end() {}

  // A summary of this rank's part for the end of a run, as lines of text. Empty: nothing is printed.
  virtual std::string account() const { return {}; }
  // Before begin() of a strategy that was made after ranks were lost: continues the account of `former`, the strategy of the same
  // kind that this rank had before.
  virtual void go_on_from(const Strategy& /*former*/) {}

  // The whole work of a rank whose role is `serves`. It has no share of the data and makes no step.
  virtual void serve(WeightsImmigration&) {}
};

}  // namespace plexaura

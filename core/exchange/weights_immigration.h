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

// The border between the engine and whoever aggregates over ranks. The engine owns weights and gradients; a
// Strategy is told when gradients are final, says when they have been aggregated, and may overwrite weights.
// Neither knows how the other works.

namespace plexaura {

class Profile;
class StagedCopy;

struct UpdateAnswer {
  // Nothing is updated, because the weights arrive in after_update instead. The step counts.
  bool skip = false;
  // The update of this bucket starts after it; null: at once. The step fails with its failure, and
  // where it has not passed after `deadline_seconds`. On a device of its own the update may have begun then.
  ExchangeEvent* event = nullptr;
  double deadline_seconds = 60;
};

// The step under way, and this rank's part of it.
struct StepPlace {
  std::int64_t number = 0;  // from 1, resumed runs included; 0 before the first
  std::int64_t epoch = 0;
  bool ends_epoch = false;   // weights are validated and saved behind it
  std::int64_t samples = 0;  // of this rank, over its micro-batches
};

// The engine's side of the border: what may be read and written, and in which pieces gradients travel.
class PLEXAURA_API WeightsImmigration {
 public:
  // The store must be placed. Buckets are slices of its gradient arena, buffers and tail the last one.
  // `profile`: to which a strategy may add what its threads do; null: nobody looks. `on_device`: see HookSet.
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

  // One tensor in logical layout, whatever the physical one. Legal before step one, and in after_update,
  // show_weights and take_weights_back.
  Tensor emigrate(std::string_view name) const { return store_.read(name); }
  void immigrate(std::string_view name, const Tensor& value) { store_.write(name, value); }

  const Placement& placement() const { return store_.placement(); }

  // The whole value arena where the host can reach it: the arena itself where the backend's memory is host memory,
  // else a copy, always the same memory, of what it holds now. What is written there are the weights when
  // store_values() has returned. Legal where immigrate() is; allocates the first time only.
  std::span<std::byte> fetch_values();
  void store_values();

  // What an update reads beside values and gradients: the optimizer's state, and the loss scale if there is one. Legal
  // where immigrate() is. Physical: that of another store is taken only together with an equal placement (UserError).
  std::vector<std::byte> emigrate_state() const;
  void immigrate_state(std::span<const std::byte> state, const Placement& placement);

  // Buckets in placement order: the order in which they are announced, on every rank and in every program.
  std::span<const Bucket> buckets() const { return buckets_; }
  // An event of the strategy's own, to answer with. It stays passed until the strategy calls its reset(), in
  // before_update of each step that uses it again.
  std::unique_ptr<ExchangeEvent> make_event() const {
    return std::make_unique<ExchangeEvent>(store_.backend().make_event());
  }

  // One that is recorded behind sums: it fails as they do. They must outlive it.
  std::unique_ptr<ExchangeEvent> make_event(const DeviceSums& sums) const;

  // What "every k steps" has to count, so that a resumed run goes on as if it had never stopped.
  const StepPlace& place() const { return place_; }
  // Its number: what messages name.
  std::int64_t step() const { return place_.number; }

  Profile* profile() const { return profile_; }

  // A bucket's elements where the host can reach them: the arena itself where the backend's memory is host
  // memory, else a staged copy that the engine fills before gradients_ready has passed and takes back after
  // the answer to before_update. Where the device failed, which shows late, what waits for the event finds
  // zeros, and `failed` in the tail. Not where HookSet::on_device: the host cannot read them then.
  std::span<std::byte> gradients(std::size_t bucket) const;
  // The same bucket of the shards that this rank has computed before in this step, in order: see StepInputs::shards.
  // The sum over them and gradients() is this rank's part.
  std::span<std::byte> shard(std::size_t index, std::size_t bucket);
  std::size_t shards_before() const { return shards_before_; }
  // In device memory, for libraries that work there.
  Address device_gradients(std::size_t bucket) const;
  // Where HookSet::on_device: enqueues the sum of a bucket over ranks where it lies, behind `final`, the event of
  // gradients_ready. `done`, made for these sums, is passed behind it. Returns at once.
  void sum_on_device(std::size_t bucket, Event& final, DeviceSums& sums, ExchangeEvent& done);

  // For the engine, when a step begins; `stop` is what the tail says where the rank's own tail is lost.
  void begin_step(const StepPlace& place, bool stop);
  // For the engine: the gradients in the arena are those of a shard, and another one of this step follows.
  void keep_shard();
  // For the engine. The failure of this rank's device that somebody met who waited for a bucket of this step;
  // null: none.
  std::exception_ptr failure() const;
  // For the engine. Enqueues the copy out of a bucket, or is captured in a recording that does.
  void stage_out(std::size_t bucket);
  // For the engine, in each step behind stage_out(), before anybody gets the event: it is passed when the host view is
  // final.
  Event& staged(std::size_t bucket);
  // For the engine. Enqueues the copy back of what is written to the host view when the event of the answer passes.
  void stage_in(std::size_t bucket, const UpdateAnswer& answer = {});
  // For the engine: waits for the event of an answer, as that says, or for all that stage_in() has left open. Where
  // one of these fails the others are failed with it, so that the device waits for none of them.
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
  std::vector<UpdateAnswer> open_;  // per bucket: what the device waits for
  std::unique_ptr<StagedCopy> values_copy_;
  std::vector<std::vector<std::byte>> shards_;  // whole arenas, on the host
  std::size_t shards_before_ = 0;
  mutable std::mutex mutex_;  // of what follows: events are waited for on any thread
  std::exception_ptr failure_;
  bool stop_ = false;
  std::vector<bool> arrived_;  // per bucket: somebody has waited for it since it was staged
};

enum class RankRole : std::uint8_t { trains, serves };

// The places at which a strategy wants to be called. What is not declared is no host point: it costs nothing.
struct HookSet {
  bool gradients_ready = false;
  bool before_update = false;
  bool agree = false;  // and so no bucket is updated before all have been exchanged
  bool after_update = false;
  bool show_weights = false;  // others are looked at than those that train
  // Buckets stay where the device has them, and sum_on_device() sums them: no copy is made, and what the device fails in
  // is told to this rank alone. Changes nothing where the backend's memory is host memory.
  bool on_device = false;
  // With before_update, where no answer skips the update: a bucket may be updated as late as the next step needs it, while
  // others are still to be exchanged. before_update is then called for the last bucket at the end of the step, and for
  // each of the others at the first instruction of the next one that reads its weights or writes its gradients, or
  // before the weights are validated, saved or shown: not in placement order, and not in the same order on all ranks.
  bool late_update = false;
};

// Of what a gradient is this rank's part. Changes of buffers follow the same rule.
enum class GradientScope : std::uint8_t {
  global,  // of the mean over the whole batch of the step: the strategy sums all buckets, the tail with them
  local  // it is the mean over this rank's own samples: the trainer sums the tails, those of several steps at once
};

// A part of what a strategy keeps for a run that goes on.
struct StrategyState {
  std::string name;  // see is_parameter_name()
  Tensor value;
  bool of_rank = false;  // each rank has its own; else that of rank 0 is everybody's
};

// How ranks work together. One object per rank; called by the thread that trains, never concurrently; before_update of
// one that is Overlapped by a thread of that.
class PLEXAURA_API Strategy {
 public:
  virtual ~Strategy();

  virtual HookSet hooks() const = 0;
  // Asked by whoever starts the ranks: one that serves is given no data and no programs, only `serve`.
  virtual RankRole role() const { return RankRole::trains; }
  // The same at every call, and on all ranks.
  virtual GradientScope scope() const { return GradientScope::global; }

  // Whether all ranks get the weights of one now and then, so that they need not round alike.
  virtual bool realigns_weights() const { return false; }

  // Null: the ranks make each step together. Else, with local scope, each rank makes its steps without the others, of
  // the parts of batches that it draws here; nothing of a step is agreed on or summed. When nothing more is dealt all
  // ranks come to show_weights(), which brings all of them the same weights. The dealer belongs to the strategy. The
  // number of a step is then its place in the run, and a rank may make several steps with one number, or none.
  virtual Dealer* dealer() { return nullptr; }

  // Memory for the arena of gradients, where the strategy wants to provide it (a shared window); null:
  // the engine's own. Asked only where the backend's memory is host memory, of all ranks at the same point. The store
  // keeps the object, and may do so for longer than the strategy lives: what lies behind it has to last as long.
  virtual std::unique_ptr<Memory> gradient_memory(std::size_t bytes);

  // Null: each rank reads its own samples. Else rank 0 reads those of all ranks, each step in as many parts as ranks
  // train, and this brings them to the others, whose data need not be readable. The courier belongs to the strategy.
  virtual Courier* courier() { return nullptr; }

  // Once, before step one, when everything is placed. May call all ranks.
  virtual void begin(WeightsImmigration&) {}

  // During backward, in placement order: the bucket is final when the event has passed. Must not block. Where the
  // model itself calls all ranks in each step, behind backward.
  virtual void gradients_ready(std::size_t /*bucket*/, Event& /*final*/) {}

  // A step has thrown, or a rank was lost, and this strategy makes no other step: when this returns, no thread of it uses the
  // border or calls other ranks.
  virtual void give_up() noexcept {}

  // Before the update of each bucket, in placement order unless the hook late_update is declared. `skip` is legal for bucket 0
  // only: a strategy that may answer it exchanges all buckets first. Some ranks may skip an update that the others make.
  virtual UpdateAnswer before_update(std::size_t /*bucket*/) { return {}; }

  // Once a step where it is declared: before_update has been answered for all buckets, their events have
  // passed, and no weight has changed. The last point at which a step can be given up: what is thrown here or
  // before leaves weights, buffers and the optimizer's state as they were after the last step.
  virtual void agree() {}

  // After the update of all buckets: weights may be overwritten.
  virtual void after_update() {}

  // Before validation, a checkpoint or the end of the run: may overwrite the weights by those that are to be looked
  // at there. May call all ranks.
  virtual void show_weights() {}
  // Behind that, before the next step if there is one: the weights that train come back.
  virtual void take_weights_back() {}

  // With local scope: whether an exchange goes on behind the step that was made last. The same on all ranks. The trainer
  // makes no sums of its own meanwhile, unless for long.
  virtual bool is_exchanging() const { return false; }

  // What a checkpoint keeps beside weights and the optimizer's state; asked of all ranks between steps. With local
  // scope also where ranks were lost in a step, of those that are left. Makes no call of all ranks, for some may fail
  // in it.
  virtual std::vector<StrategyState> state() const { return {}; }
  // In a run that was resumed from a checkpoint with such, between begin() and the first step. What belongs to ranks
  // is given back to as many as there were, with local scope also where more have begun, and otherwise to nobody.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): a strategy with state keeps it
  virtual void take_state(std::vector<StrategyState> /*state*/) {}

  // With local scope, where ranks were lost: once, when those that are left have begun() and each has taken the whole
  // state() that its former strategy had. They may have come to different points of an exchange: either all of
  // them take it here or none. WeightsImmigration::place() is the last step that any of them has made. May call all
  // ranks.
  virtual void settle() {}

  // What this rank has exchanged since the last call. Asked between steps. None where nobody counts that, or nothing was
  // exchanged.
  virtual std::optional<ExchangeRecord> take_exchange_record() { return std::nullopt; }

  // Once, after the last step of a run that ends without an error; weights stay as they are. What a serving
  // rank is told by.
  virtual void end() {}

  // What a person is to know of this rank's part at the end of a run, as lines of text; empty: nothing.
  virtual std::string account() const { return {}; }
  // Before begin(), of one that was made after ranks were lost: its account goes on behind that of `former`, the strategy that this
  // rank had before, of the same kind.
  virtual void go_on_from(const Strategy& /*former*/) {}

  // The whole work of a rank whose role is `serves`: it has no share of the data and runs no step.
  virtual void serve(WeightsImmigration&) {}
};

}  // namespace plexaura

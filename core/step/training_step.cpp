#include "core/step/training_step.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/profile.h"
#include "core/compile/link.h"
#include "core/device/transfer.h"
#include "core/graph/leaf.h"

namespace plexaura {

namespace {

constexpr std::string_view communication = "communication";  // category of profile events

bool reads(const Graph& graph, StepScalar scalar) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const Leaf* leaf = as_leaf(*graph.record(id).op);
        leaf != nullptr && leaf->kind() == LeafKind::step_scalar && leaf->scalar() == scalar)
      return true;
  return false;
}

std::int64_t samples_of(const StepInputs& inputs) {
  std::int64_t samples = 0;
  for (const MicroBatchInputs& batch : inputs.micro_batches) samples += batch.samples;
  return samples;
}

bool begins_shard(const StepInputs& inputs, std::size_t micro_batch) {
  return micro_batch % (inputs.micro_batches.size() / static_cast<std::size_t>(inputs.shards)) == 0;
}

}  // namespace

namespace {

// True if an update divides gradients by the weight of the loss, which is the last element of the gradient arena.
bool divides_by_weight(const Program& update) {
  const std::int64_t element = update.placement.tail_offset() + static_cast<std::int64_t>(weight_slot);
  return update.first_gradient_use(element) < update.instructions.size();
}

}  // namespace

bool sums_over_ranks(const Program& program) {
  return std::ranges::any_of(program.instructions, [&](const Instruction& instruction) {
    return std::ranges::any_of(
        instruction.nodes, [&](NodeId node) { return program.graph->record(node).op->traits().collective; });
  });
}

TrainingStep::TrainingStep(Backend& backend, ParameterStore& store, const StrategyInUse& strategy,
                           std::int64_t bucket_bytes, bool watch, Profile* profile)
    : backend_use_(backend),
      backend_(backend),
      store_(store.share()),
      strategy_(strategy_or_none(strategy.strategy)),
      parts_(strategy.parts),
      metrics_(backend, store_),
      watch_(watch),
      profile_(profile),
      border_(store_, bucket_bytes, profile, parts_.on_device),
      exchanged_(border_.buckets().size()) {
  check_strategy_parts(parts_);
}

// The strategy gives up first, because its open exchanges use memory of `border_`.
TrainingStep::~TrainingStep() {
  if (late_ && late_->any_open()) strategy_.give_up();
}

void TrainingStep::update_late(const std::vector<std::shared_ptr<const Program>>& updates) {
  late_.emplace(updates, backend_, store_, profile_);
}

void TrainingStep::add_program(std::int64_t samples, bool is_first, std::shared_ptr<const Program> gradients,
                               const Program* update, std::shared_ptr<Workspace> workspace,
                               Collective* collective) {
  sums_in_programs_ = sums_in_programs_ || sums_over_ranks(*gradients);
  std::vector<HostPoint> points;
  if (late_ && is_first) add_points_of_late_updates(*gradients, update != nullptr, points);
  if (update != nullptr) add_points_of_gradients(*gradients, points);
  if (update != nullptr) divides_loss_scale_ = reads(*update->graph, StepScalar::loss_scale);
  if (update != nullptr) metrics_.expect_weights(divides_by_weight(*update));
  if (update != nullptr && !late_) {
    add_points_of_update(update, gradients->instructions.size(), points);
    gradients = link(*gradients, *update);
  }
  VmOptions options{&store_, std::move(workspace), collective, std::move(points), watch_, profile_};
  vms_[{samples, is_first, update != nullptr, true}] =
      std::make_unique<VM>(std::move(gradients), backend_, std::move(options));
}

void TrainingStep::add_gradient_program(std::int64_t samples, std::shared_ptr<const Program> gradients,
                                        std::shared_ptr<Workspace> workspace, Collective* collective) {
  if (late_) throw InternalError("a step without an update cannot leave updates open");
  sums_in_programs_ = sums_in_programs_ || sums_over_ranks(*gradients);
  std::vector<HostPoint> points;
  add_points_of_gradients(*gradients, points);
  add_points_of_update(nullptr, gradients->instructions.size(), points);
  VmOptions options{&store_, std::move(workspace), collective, std::move(points), watch_, profile_};
  vms_[{samples, true, true, false}] =
      std::make_unique<VM>(std::move(gradients), backend_, std::move(options));
}

std::set<std::string> TrainingStep::ops_on_host() const {
  std::set<std::string> ops;
  for (const auto& [key, vm] : vms_) ops.merge(vm->program().ops_on_host());
  return ops;
}

HostPoint TrainingStep::point(std::size_t instruction, const PointWork& work) {
  works_.push_back(work);
  return {instruction, works_.size() - 1};
}

// Adds the points at which this program needs the open updates of the step before. They come before it announces any
// bucket. The last bucket is never open.
void TrainingStep::add_points_of_late_updates(const Program& gradients, bool final,
                                              std::vector<HostPoint>& points) {
  const std::span<const Bucket> buckets = border_.buckets();
  const std::size_t latest = final ? gradients.gradients_ready_after(buckets[0].offset + buckets[0].count)
                                   : gradients.instructions.size();
  for (std::size_t bucket = 0; bucket + 1 < buckets.size(); ++bucket) {
    const Bucket& slice = buckets[bucket];
    const std::size_t first = gradients.first_touch(slice.offset, slice.offset + slice.count);
    points.push_back(point(std::min(first, latest), {&TrainingStep::update_open, bucket}));
  }
}

// Adds the points at which buckets become final, for a program after which the step's gradients are final. Buckets are
// announced in placement order: a bucket waits for those before it.
void TrainingStep::add_points_of_gradients(const Program& gradients, std::vector<HostPoint>& points) {
  if (parts_.gradients == nullptr) return;
  for (std::size_t bucket = 0; bucket < border_.buckets().size(); ++bucket) {
    const Bucket& slice = border_.buckets()[bucket];
    const std::int64_t end = slice.offset + slice.count;
    // If the program itself sums over ranks, the strategy exchanges only after the program, never at the same time.
    const std::size_t ready =
        sums_in_programs_ ? gradients.instructions.size() : gradients.gradients_ready_after(end);
    points.push_back(point(ready, {&TrainingStep::announce, bucket}));
    points.back().enqueue = [this, bucket] { border_.stage_out(bucket); };
  }
}

// Adds the points at which the sums of buckets are needed, for an update that begins after the instruction `begin`. Null: all
// are needed there.
void TrainingStep::add_points_of_update(const Program* update, std::size_t begin,
                                        std::vector<HostPoint>& points) {
  if (parts_.gradients == nullptr) return;
  // One point asks for all buckets if ranks agree before the update. Otherwise each bucket has its own point.
  const std::size_t asked = parts_.agrees ? 1 : border_.buckets().size();
  for (std::size_t bucket = 0; bucket < asked; ++bucket) {
    const std::size_t first =
        bucket == 0 || update == nullptr ? 0 : update->first_gradient_use(border_.buckets()[bucket].offset);
    points.push_back(point(begin + first, {&TrainingStep::begin_update, bucket}));
  }
}

StepTicket TrainingStep::run(const StepInputs& inputs) {
  const InUse use(busy_, "a training step",
                  "a training step is made by one thread at a time, and another thread makes one now");
  backend_use_.get();
  if (inputs.loss_scale != 1 && !divides_loss_scale_)
    throw InternalError("gradients have a loss scale, and the update does not divide it out");
  const ProfileSpan span(profile_, "step", "step", static_cast<std::size_t>(samples_of(inputs)));
  failure_ = inputs.failure;
  border_.await_answers();
  metrics_.add_failure(border_.failure());
  take_weights_back();
  border_.begin_step({inputs.step, inputs.epoch, inputs.ends_epoch, samples_of(inputs)}, inputs.stop);
  announced_ = asked_ = 0;
  updating_ = exchanging_ = skips_ = false;
  try {
    compute(inputs);
    if (failure_) exchange_after_failure(inputs);
    if (late_) leave_open(inputs);
  } catch (...) {
    strategy_.give_up();
    if (failure_) std::rethrow_exception(failure_);  // a present error may be a consequence of failure_
    throw;
  }
  if (inputs.updates_weights) after_update(inputs.step);
  return {push_metrics()};
}

// Calls the strategy's after_update(), if the strategy exchanges weights. after_update() may wait for the device
// without a deadline, and the device may itself wait for open exchanges. So this function awaits those exchanges
// first, because they have a deadline.
void TrainingStep::after_update(std::int64_t step) {
  if (parts_.weights != nullptr) border_.await_answers();
  if (!skips_ && !failure_) updated_step_ = step;
  if (parts_.weights == nullptr) return;
  const ProfileSpan span(profile_, "after_update", communication);
  parts_.weights->after_update();
}

// Computes the gradients and, unless the strategy skips it, the update. A failure of this rank's own work is kept in
// `failure_`. It is thrown if a program sums over ranks, where others wait, and in an update without `watch_`.
void TrainingStep::compute(const StepInputs& inputs) {
  try {
    if (failure_) std::rethrow_exception(failure_);
    for (std::size_t i = 0; i < inputs.micro_batches.size(); ++i) {
      if (i > 0 && begins_shard(inputs, i)) border_.keep_shard();
      const MicroBatchInputs& batch = inputs.micro_batches[i];
      VmRun run(program_of(inputs, i), batch.feeds, block_of(inputs, batch));
      while (const std::optional<std::size_t> id = run.next()) {
        (this->*works_[*id].work)(works_[*id].bucket);
        if (skips_) return run.end();
      }
    }
  } catch (...) {
    if (exchanging_ || (updating_ && !watch_) || sums_in_programs_) throw;
    failure_ = std::current_exception();
  }
}

// Takes part in the exchange after this rank's work has failed, with gradients of zero. So no rank waits for
// it, and all learn of the failure. Buckets that were announced before the failure belong to the strategy and
// are not changed.
void TrainingStep::exchange_after_failure(const StepInputs& inputs) {
  update_all_open();
  clear_gradients(inputs.stop);
  if (parts_.gradients == nullptr) return;
  for (std::size_t bucket = announced_; bucket < border_.buckets().size(); ++bucket) {
    border_.stage_out(bucket);
    announce(bucket);
  }
  while (!late_ && !skips_ && asked_ < border_.buckets().size()) begin_update(asked_);
}

// Called before the update of a bucket. Sets `skips_` if the update is not to be made.
void TrainingStep::begin_update(std::size_t bucket) {
  if (parts_.agrees) return begin_whole_update();
  const ProfileSpan span(profile_, "before_update", communication, bucket);
  updating_ = exchanging_ = true;
  asked_ = bucket + 1;
  const UpdateAnswer answer = parts_.gradients->before_update(bucket);
  if (answer.skip && late_) throw InternalError("a strategy that updates late may skip no update");
  if (answer.skip && bucket > 0)
    throw InternalError("a strategy may skip an update only in its answer for the first bucket");
  skips_ = answer.skip;
  // Even if the update is skipped, the last bucket is copied back, because it contains the tail.
  border_.stage_in(skips_ ? border_.buckets().size() - 1 : bucket, answer);
  // In these cases the host soon waits for the device without a deadline, so the exchange, which has one, is awaited
  // first. A third late update waits until the feed slot of the first one is free.
  if (watch_ || profile_ != nullptr || (late_ && !backend_.info().host_memory)) border_.await_answers();
  exchanging_ = false;
}

// Called before the update, if ranks agree before they update: all buckets must be summed on all ranks first.
void TrainingStep::begin_whole_update() {
  updating_ = exchanging_ = true;
  asked_ = exchanged_.size();
  for (std::size_t bucket = 0; bucket < exchanged_.size(); ++bucket) {
    const ProfileSpan span(profile_, "before_update", communication, bucket);
    exchanged_[bucket] = parts_.gradients->before_update(bucket);
    if (exchanged_[bucket].skip)
      throw InternalError("a strategy that agrees on each step may skip no update");
  }
  for (std::size_t bucket = 0; bucket < exchanged_.size(); ++bucket) {
    border_.await(bucket, exchanged_[bucket]);
    border_.stage_in(bucket);
  }
  const ProfileSpan span(profile_, "agree", communication);
  parts_.gradients->agree();
  exchanging_ = false;
}

// Begins the updates of a step, which run late: an update stays open until its weights are needed. Only the
// last bucket, which holds the loss, is updated at once. At the end of an epoch all updates are made, so that
// validation sees the final weights.
void TrainingStep::leave_open(const StepInputs& inputs) {
  late_->open(failure_ ? StepBlock{} : block_of(inputs, inputs.micro_batches.back()), failure_ != nullptr);
  update_open(border_.buckets().size() - 1);
  if (inputs.ends_epoch) update_all_open();
}

void TrainingStep::update_open(std::size_t bucket) {
  if (!late_->take(bucket)) return;
  begin_update(bucket);
  late_->run(bucket);
  updating_ = false;
}

void TrainingStep::update_all_open() {
  for (std::size_t bucket = 0; late_ && bucket < border_.buckets().size(); ++bucket) update_open(bucket);
}

void TrainingStep::await_weights() {
  update_all_open();
  border_.await_answers();
  if (!parts_.shows_weights || std::exchange(shown_, true)) return;
  parts_.weights->show_weights();
}

void TrainingStep::take_weights_back() {
  if (std::exchange(shown_, false)) parts_.weights->take_weights_back();
}

// Returns the program of a micro-batch.
VM& TrainingStep::program_of(const StepInputs& inputs, std::size_t micro_batch) const {
  const std::size_t batches = inputs.micro_batches.size();
  const std::int64_t samples = inputs.micro_batches[micro_batch].samples;
  const auto vm = vms_.find(
      {samples, begins_shard(inputs, micro_batch), micro_batch + 1 == batches, inputs.updates_weights});
  if (vm == vms_.end())
    throw InternalError(fmt::format("no program was compiled for {} samples as micro-batch {} of {}", samples,
                                    micro_batch, batches));
  return *vm->second;
}

StepBlock TrainingStep::block_of(const StepInputs& inputs, const MicroBatchInputs& batch) const {
  const std::int64_t whole =
      parts_.scope == GradientScope::global ? inputs.global_samples : samples_of(inputs);
  StepBlock block;
  block.share = static_cast<double>(batch.samples) / static_cast<double>(std::max<std::int64_t>(whole, 1));
  block.gradient_seed = block.share * inputs.loss_scale;
  block.samples = static_cast<double>(batch.samples);
  block.learning_rate = inputs.learning_rate;
  block.loss_scale = inputs.loss_scale;
  block.step = static_cast<double>(inputs.step);
  block.stop = inputs.stop && &batch == &inputs.micro_batches.front() ? 1 : 0;
  block.seed = inputs.seed;
  block.first_sample = batch.first_sample;
  return block;
}

// Sets the gradients that were not announced to zero, and `failed` in the tail.
void TrainingStep::clear_gradients(bool stop) {
  const Placement& placement = store_.placement();
  const auto start = [&](std::int64_t element) {
    return static_cast<std::size_t>(placement.bytes_before(ArenaKind::gradient, element));
  };
  std::vector<std::byte> zeros(placement.bytes(ArenaKind::gradient));
  const auto set = [&](TailSlot slot, double value) {
    const Tensor element = Tensor::scalar(value).cast(store_.dtype());
    std::copy_n(element.data(), element.bytes(),
                zeros.data() + start(placement.tail_offset() + static_cast<std::int64_t>(slot)));
  };
  set(TailSlot::failed, 1);
  set(TailSlot::stop, stop ? 1 : 0);
  try {
    wait_for(backend_);
  } catch (const std::exception&) {
    // Ignores the error: it is the failure that is being handled, or a consequence of it.
  }
  if (announced_ == border_.buckets().size()) return;
  const std::size_t first = start(border_.buckets()[announced_].offset);
  copy_to_device(backend_, store_.gradients() + first, zeros.data() + first, zeros.size() - first);
}

void TrainingStep::announce(std::size_t bucket) {
  Event& final = border_.staged(bucket);
  const ProfileSpan span(profile_, "gradients_ready", communication, bucket,
                         border_.gradients(bucket).size());
  parts_.gradients->gradients_ready(bucket, final);
  announced_ = bucket + 1;
}

std::uint64_t TrainingStep::push_metrics() {
  return newest_ = metrics_.push(failure_ ? failure_ : border_.failure());
}

void TrainingStep::await_exchange(const StepTicket& ticket) {
  if (ticket.number == newest_) border_.await_answers();
}

StepMetrics TrainingStep::metrics(const StepTicket& ticket) {
  await_exchange(ticket);
  metrics_.add_failure(border_.failure());
  return metrics_.read(ticket.number);
}

}  // namespace plexaura

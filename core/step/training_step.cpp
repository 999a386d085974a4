#include "core/step/training_step.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "core/device/transfer.h"
#include "core/error.h"
#include "core/graph/leaf.h"
#include "core/vm/profile.h"

namespace plexaura {

namespace {

constexpr std::string_view communication = "communication";  // a category of events

bool reads(const Graph& graph, StepScalar scalar) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const Leaf* leaf = as_leaf(*graph.record(id).op);
        leaf != nullptr && leaf->kind() == LeafKind::step_scalar && leaf->scalar() == scalar)
      return true;
  return false;
}

}  // namespace

TrainingStep::TrainingStep(Backend& backend, ParameterStore& store, Strategy* strategy,
                           std::int64_t bucket_bytes, bool watch, Profile* profile)
    : backend_(backend),
      store_(store),
      strategy_(strategy),
      hooks_(strategy != nullptr ? strategy->hooks() : HookSet{}),
      border_(store, bucket_bytes),
      metrics_(backend, store),
      watch_(watch),
      profile_(profile),
      in_use_(border_.buckets().size(), false) {}

TrainingStep::~TrainingStep() = default;

void TrainingStep::add_gradient_program(std::int64_t samples, bool accumulate,
                                        std::shared_ptr<const Program> program,
                                        std::shared_ptr<Workspace> workspace, Collective* collective) {
  VmOptions options{&store_, std::move(workspace), collective, gradient_host_points(*program), watch_,
                    profile_};
  gradient_vms_[{samples, accumulate}] =
      std::make_unique<VM>(std::move(program), backend_, std::move(options));
}

// Where this program finishes buckets and first needs them. Announced in placement order: a bucket waits for
// those before it.
std::vector<HostPoint> TrainingStep::gradient_host_points(const Program& program) {
  std::vector<HostPoint> points;
  for (std::size_t bucket = 0; bucket < border_.buckets().size(); ++bucket) {
    const Bucket& slice = border_.buckets()[bucket];
    if (hooks_.before_use)
      points.push_back({program.first_use(slice.offset, slice.offset + slice.count),
                        [this, bucket] { before_use(bucket); }});
    if (hooks_.gradients_ready)
      points.push_back({program.gradients_ready_after(slice.offset + slice.count), [this, bucket] {
                          if (announcing_) announce(bucket);
                        }});
  }
  return points;
}

void TrainingStep::set_update_program(std::shared_ptr<const Program> program,
                                      std::shared_ptr<Workspace> workspace) {
  std::vector<HostPoint> points;
  if (hooks_.before_update)
    for (std::size_t bucket = 1; bucket < border_.buckets().size(); ++bucket)
      points.push_back({program->first_gradient_use(border_.buckets()[bucket].offset), [this, bucket] {
                          const UpdateAnswer answer = before_update(bucket);
                          if (answer.kind != UpdateAnswer::Kind::ready)
                            throw InternalError(
                                "a strategy may answer repeat or stop for the first bucket only");
                          border_.stage_in(bucket, answer.event);
                        }});
  divides_loss_scale_ = reads(*program->graph, StepScalar::loss_scale);
  VmOptions options{&store_, std::move(workspace), nullptr, std::move(points), watch_, profile_};
  update_vm_ = std::make_unique<VM>(std::move(program), backend_, std::move(options));
}

StepTicket TrainingStep::run(const StepInputs& inputs) {
  if (inputs.loss_scale != 1 && !divides_loss_scale_)
    throw InternalError("gradients have a loss scale, and the update does not divide it out");
  failure_ = inputs.failure;
  border_.begin_step(inputs.step, inputs.stop);
  UpdateAnswer answer{UpdateAnswer::Kind::repeat};
  while (answer.kind == UpdateAnswer::Kind::repeat) {
    compute_gradients(inputs);
    answer = hooks_.before_update ? before_update(0) : UpdateAnswer{};
  }
  if (answer.kind == UpdateAnswer::Kind::stop) return {push_metrics(), false};
  if (hooks_.before_update) border_.stage_in(0, answer.event);
  StepBlock block;
  block.learning_rate = inputs.learning_rate;
  block.step = static_cast<double>(inputs.step);
  block.loss_scale = inputs.loss_scale;
  update_vm_->run({}, block);
  if (hooks_.after_update) {
    const ProfileSpan span(profile_, "after_update", communication);
    strategy_->after_update();
  }
  in_use_.assign(in_use_.size(), false);
  return {push_metrics(), true};
}

void TrainingStep::await_weights() {
  for (std::size_t bucket = 0; hooks_.before_use && bucket < in_use_.size(); ++bucket) before_use(bucket);
}

void TrainingStep::before_use(std::size_t bucket) {
  if (in_use_[bucket]) return;
  const ProfileSpan span(profile_, "before_use", communication, bucket);
  strategy_->before_use(bucket);
  in_use_[bucket] = true;
}

// Where this rank had failed before, what the strategy meets now may only follow from it: the first failure
// is told.
UpdateAnswer TrainingStep::before_update(std::size_t bucket) {
  const ProfileSpan span(profile_, "before_update", communication, bucket);
  try {
    return strategy_->before_update(bucket);
  } catch (...) {
    if (failure_) std::rethrow_exception(failure_);
    throw;
  }
}

void TrainingStep::gradients_ready(std::size_t bucket) {
  Event& final = border_.stage_out(bucket);
  const ProfileSpan span(profile_, "gradients_ready", communication, bucket);
  strategy_->gradients_ready(bucket, final);
}

void TrainingStep::compute_gradients(const StepInputs& inputs) {
  announced_ = 0;
  try {
    if (failure_) std::rethrow_exception(failure_);
    run_micro_batches(inputs);
  } catch (...) {
    fail(std::current_exception(), inputs);
  }
  announce_rest();
}

void TrainingStep::run_micro_batches(const StepInputs& inputs) {
  for (std::size_t i = 0; i < inputs.micro_batches.size(); ++i) {
    const MicroBatchInputs& batch = inputs.micro_batches[i];
    const auto vm = gradient_vms_.find({batch.samples, i > 0});
    if (vm == gradient_vms_.end())
      throw InternalError(
          fmt::format("no program was compiled for {} samples as micro-batch {}", batch.samples, i));
    announcing_ = i + 1 == inputs.micro_batches.size();
    StepBlock block;
    block.share = static_cast<double>(batch.samples) /
                  static_cast<double>(std::max<std::int64_t>(inputs.global_samples, 1));
    block.gradient_seed = block.share * inputs.loss_scale;
    block.samples = static_cast<double>(batch.samples);
    block.learning_rate = inputs.learning_rate;
    block.step = static_cast<double>(inputs.step);
    block.stop = inputs.stop && i == 0 ? 1 : 0;
    block.seed = inputs.seed;
    block.first_sample = batch.first_sample;
    vm->second->run(batch.feeds, block);
  }
}

// A rank whose work failed still takes part, with nothing to add, so that nobody waits for it and all learn
// of it. Buckets that were announced before the failure are the strategy's already.
void TrainingStep::fail(std::exception_ptr failure, const StepInputs& inputs) {
  failure_ = std::move(failure);
  const Placement& placement = store_.placement();
  Tensor zeros(TensorType{placement.dtype, Shape{placement.gradient_count()}});
  const auto set = [&](TailSlot slot, double value) {
    const Tensor element = Tensor::scalar(value).cast(placement.dtype);
    const auto index = static_cast<std::size_t>(placement.tail_offset()) + static_cast<std::size_t>(slot);
    std::copy_n(element.data(), element.bytes(), zeros.data() + index * element.bytes());
  };
  set(TailSlot::failed, 1);
  set(TailSlot::stop, inputs.stop ? 1 : 0);
  try {
    wait_for(backend_);
  } catch (const std::exception&) {
    // The failure that brought us here, or one that followed from it.
  }
  if (announced_ == border_.buckets().size()) return;
  const auto first =
      static_cast<std::size_t>(border_.buckets()[announced_].offset) * size_of(placement.dtype);
  copy_to_device(backend_, store_.gradients() + first, zeros.data() + first, zeros.bytes() - first);
}

void TrainingStep::announce(std::size_t bucket) {
  if (bucket < announced_) return;
  gradients_ready(bucket);
  announced_ = bucket + 1;
}

// A strategy that wants no announcements, or buckets that no instruction of this program writes.
void TrainingStep::announce_rest() {
  if (strategy_ == nullptr || !(hooks_.gradients_ready || hooks_.before_update)) return;
  for (std::size_t bucket = announced_; bucket < border_.buckets().size(); ++bucket) {
    if (hooks_.gradients_ready)
      gradients_ready(bucket);
    else
      border_.stage_out(bucket);
  }
  announced_ = border_.buckets().size();
}

std::uint64_t TrainingStep::push_metrics() { return metrics_.push(failure_ ? failure_ : border_.failure()); }

StepMetrics TrainingStep::metrics(const StepTicket& ticket) {
  return metrics_.read(ticket.number, border_.failure());
}

}  // namespace plexaura

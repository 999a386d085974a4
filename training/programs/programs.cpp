#include "training/programs/programs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ranges>
#include <set>

#include "core/base/did_you_mean.h"
#include "core/base/fnv.h"
#include "core/compile/link.h"
#include "core/graph/structure.h"
#include "core/ops/batch_norm.h"
#include "training/optimizers/group_optimizers.h"
#include "training/programs/bucket_updates.h"
#include "training/programs/first_loss_scale.h"
#include "training/programs/memory_limit.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

std::string broadcast_text(Collective& collective, std::string text, std::string_view what) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  collective.broadcast(reinterpret_cast<std::byte*>(&size), sizeof size, 0, what);
  text.resize(static_cast<std::size_t>(size));
  collective.broadcast(reinterpret_cast<std::byte*>(text.data()), text.size(), 0, what);
  return text;
}

[[noreturn]] void throw_unreadable() {
  throw InternalError("a rank sent times of kernels that cannot be read");
}

std::set<std::int64_t> sizes_of(const BatchPlan& plan, std::int64_t rank) {
  const std::vector<std::int64_t> sizes = plan.micro_batch_sizes(rank);
  return {sizes.begin(), sizes.end()};
}

// Returns the sizes of micro-batches that every rank has.
std::set<std::int64_t> sizes_of_all(const BatchPlan& plan) {
  std::set<std::int64_t> shared = sizes_of(plan, 0);
  for (std::int64_t rank = 1; rank < plan.ranks; ++rank) {
    const std::set<std::int64_t> sizes = sizes_of(plan, rank);
    std::erase_if(shared, [&](std::int64_t size) { return !sizes.contains(size); });
  }
  return shared;
}

// Throws if the ranks would not sum the weights of the loss. Each rank would then divide the sum of all
// ranks' gradients by its own weight.
void check_weights_are_summed(const StrategyParts& parts, bool is_weighted) {
  if (is_weighted && parts.gradients != nullptr && parts.scope == GradientScope::local)
    throw UserError(
        "the loss has weights, of model.class_weights or LossOutputs::weight, and the strategy sums "
        "gradients, but not these weights; use another distributed.strategy, or set distributed.group to 1");
}

// Returns the largest number of samples of a micro-batch: rank 0 has samples in every step, and no rank has
// more samples than rank 0.
std::int64_t largest_size(const BatchPlan& plan) { return plan.micro_batch(0, 0, 0).count; }

// Returns a text that names the step with a micro-batch of this size, for errors about micro-batches that are
// too small.
std::string too_small(std::int64_t samples, const BatchPlan& plan) {
  const bool in_all = plan.micro_batch(0, plan.ranks - 1, plan.micro_batches - 1).count <= samples;
  const std::int64_t step = in_all ? 0 : plan.steps_per_epoch() - 1;
  std::string parts;
  if (plan.ranks > 1) parts += fmt::format(" for {} ranks", plan.ranks);
  if (plan.micro_batches > 1) parts += fmt::format(" in {} micro-batches", plan.micro_batches);
  return fmt::format(
      "{} of an epoch has {} of the {} samples{}: give another training.batch_size, so that {} has {} "
      "samples or more",
      in_all ? "a step" : "the last step", plan.global_batch(step).count, plan.samples, parts,
      parts.empty() ? "every step" : "every part of a step", samples + 1);
}

std::string name_of_program(std::int64_t samples) {
  return fmt::format("a step with {} {} at a time", samples, samples == 1 ? "sample" : "samples");
}

std::string parameters_text(std::size_t bytes) {
  return fmt::format(
      "the parameters, gradients and the optimizer's state are {} bytes, whatever the batch; use a smaller "
      "model, or a device with more memory",
      bytes);
}

// Returns a text about the memory that a step with micro-batches of this size needs, and how to reduce it.
std::string plan_text(std::int64_t samples, std::size_t arena_bytes, std::size_t parameter_bytes,
                      DType precision, bool has_limit) {
  std::vector<std::string> remedies{"lower training.batch_size", "raise training.micro_batches"};
  if (size_of(precision) > size_of(DType::bfloat16))
    remedies.emplace_back("set training.precision to bfloat16");
  if (!has_limit) remedies.emplace_back("set training.memory, with which values are computed again");
  const std::string last = remedies.back();
  remedies.pop_back();
  return fmt::format(
      "{} bytes of intermediate values are planned for {} samples at a time, in addition to {} bytes of "
      "parameters, gradients and the optimizer's state; {}, or {}",
      arena_bytes, samples, parameter_bytes, fmt::join(remedies, ", "), last);
}

template <class Kind>
void throw_with_plan(const Kind& error, const std::string& plan) {
  if (const auto* const missing = dynamic_cast<const OutOfMemory*>(&error))
    throw Kind(fmt::format("{}: {}", missing->fact(), plan));
}

// Calls a function that allocates memory. If the device has too little of it, adds the plan to the error.
template <class Work>
void allocate(const std::string& plan, const Work& work) {
  try {
    work();
  } catch (const UserError& error) {  // thrown by described devices
    throw_with_plan(error, plan);
    throw;
  } catch (const DeviceError& error) {
    throw_with_plan(error, plan);
    throw;
  }
}

}  // namespace

TrainingPrograms::TrainingPrograms(ModelBuilder model, std::vector<Field> fields, ParameterStore& store,
                                   Backend& backend, Collective& collective, const StrategyInUse& strategy,
                                   const BatchPlan& train, const BatchPlan& validation,
                                   const ProgramOptions& options)
    : model_(std::move(model)),
      fields_(std::move(fields)),
      evaluator_(model_, fields_, store, backend, collective, options.watch, options.profile, options.tuner,
                 options.strict),
      store_(store),
      backend_(backend),
      collective_(collective),
      options_(options),
      strategy_(strategy) {
  const std::int64_t rank = collective.rank();
  if (options_.own_parts.count == 0) options_.own_parts = {rank, 1};
  share_kernel_times();
  place(collective, train);
  together(collective, "reading the memory of a step", [&] { find_other_memory(train, validation); });
  measure_kernels(train, validation);
  together(collective, "compiling", [&] {
    for (std::int64_t other = 0; options_.draws_parts && other < train.ranks; ++other)
      compile_part(train, other);
    for (std::int64_t i = 0; i < options_.own_parts.count; ++i)
      compile_part(train, options_.own_parts.first + i);
    compile_validation(validation, rank);
    drop_sizes_of_others(train, validation);
    make_machines(train.micro_batches);
    hashes_.plan = hash_of_plan(largest_size(train));
    hashes_.kernels = hash_of_kernels(sizes_of_all(train), true);
    hashes_.own_kernels =
        hash_of_kernels(options_.draws_parts ? own_sizes(train) : sizes_of(train, options_.own_parts.first),
                        options_.buckets_change_bits);
  });
  kernel_times_ = times_in_use();
  if (options_.tuner != nullptr) options_.tuner->freeze();
}

BuiltModel TrainingPrograms::build(std::int64_t samples) const {
  return build_model(model_, fields_, samples, store_, Mode::train);
}

std::shared_ptr<const Program> TrainingPrograms::compile_gradients(std::int64_t samples,
                                                                   const BatchPlan& plan,
                                                                   const Placement* placement) {
  const BuiltModel model = build(samples);
  check_batch_norms(*model.graph, too_small(samples, plan));
  evaluator_.know_metrics(model.outputs);
  check_weights_are_summed(strategy_.parts, evaluator_.is_weighted());
  labels_ = label_inputs(*model.graph);
  std::set<std::string> replaced = replaced_buffers(*model.graph);
  if (replaced_.value_or(replaced) != replaced)
    throw UserError(
        "the model adds to a buffer in micro-batches of one size and replaces it in those of another; write "
        "its update alike whatever the number of samples is");
  replaced_ = std::move(replaced);
  const std::vector<ProgramOutput> outputs = training_outputs(*model.graph, model.outputs, store_, samples);
  CompileOptions options{.placement = placement,
                         .types = store_.types(),
                         .apply_updates = false,
                         .tuner = options_.tuner,
                         .strict = options_.strict};
  if (options_.memory && placement != nullptr)
    options.memory_limit = arena_limit(*options_.memory, memory_.others);
  std::shared_ptr<const Program> program;
  try {
    program = compile(*model.graph, outputs, backend_, options);
  } catch (const MemoryLimitError& error) {
    throw too_much_memory(name_of_program(samples), error.least_bytes(), true, remedies(samples));
  }
  if (options_.draws_parts && collective_.size() > 1)
    check_calls_nobody(*program, "in each step",
                       "with this strategy a rank makes its steps without the others; use batch norm of each "
                       "rank's own samples, or another distributed.strategy");
  if (options_.parts_may_move && collective_.size() > 1)
    check_calls_nobody(
        *program, "in each step",
        "with distributed.on_loss 'exact' a rank may compute the part of a lost one; use batch norm "
        "of each rank's own samples, or set distributed.on_loss to drop");
  return program;
}

// Finds the memory of a step that is not the arena of a program. The feed slots have the size that the largest
// batch needs, so that all programs have the same limit for their arena, on all ranks.
void TrainingPrograms::find_other_memory(const BatchPlan& train, const BatchPlan& validation) {
  std::int64_t samples = largest_size(train);
  if (validation.samples > 0) samples = std::max(samples, largest_size(validation));
  Graph inputs;
  const ModelInputs of_batch(inputs, fields_, samples, store_.dtype());
  memory_.others =
      input_bytes(inputs) + parameter_bytes(store_.placement(), store_.states(), train.micro_batches > 1);
}

// Places the store on all ranks by the placement of rank 0.
void TrainingPrograms::place(Collective& collective, const BatchPlan& plan) {
  std::string placement;
  on_rank_0(collective, "placing the parameters",
            [&] { placement = to_text(compile_gradients(largest_size(plan), plan, nullptr)->placement); });
  placement = broadcast_text(collective, std::move(placement), "the placement of the parameters");
  const Placement placed = together(collective, "placing the parameters", [&] {
    options_.optimizer.groups = groups_by_name(options_.optimizer.groups, store_.specs());
    return store_.complete(ordered_by_rule(parse_placement(placement), options_.optimizer));
  });
  // Constructing the memory may call all ranks, so no rank may have failed before.
  std::unique_ptr<Memory> gradients;
  if (strategy_.parts.gradients != nullptr && backend_.info().host_memory)
    gradients = strategy_.parts.gradients->gradient_memory(placed.bytes(ArenaKind::gradient));
  together(collective, "placing the parameters", [&] {
    const std::int64_t states = state_count(options_.optimizer);
    allocate(parameters_text(parameter_bytes(placed, states, false)), [&] {
      store_.trained_parts().clear();
      store_.place(placed, backend_, [&](std::size_t) { return std::move(gradients); });
      store_.require_states(states);
    });
  });
}

// Gives all ranks the same times of kernels. If each rank measured by itself, or had other times, the ranks
// would choose different kernels.
void TrainingPrograms::share_kernel_times() {
  if (options_.tuner == nullptr || collective_.size() == 1) return;
  const bool knows = collective_.rank() == 0;
  const std::string times =
      broadcast_text(collective_, knows ? options_.tuner->to_text() : "", "the times of kernels");
  if (!knows && !options_.tuner->add(times)) throw_unreadable();
  const std::vector<std::string> kinds =
      collective_.gather_all(where_times_hold(backend_.info()), "the kinds of processors");
  const auto mine = kinds.begin() + collective_.rank();
  measures_ = std::find(kinds.begin(), mine, *mine) == mine;
}

void TrainingPrograms::measure_kernels(const BatchPlan& train, const BatchPlan& validation) {
  if (options_.tuner == nullptr || collective_.size() == 1) return;
  on_some_ranks(collective_, measures_, "measuring the kernels", [&] {
    for (std::int64_t part = 0; part < train.ranks; ++part) compile_part(train, part);
    for (std::int64_t rank = 0; rank < validation.ranks; ++rank) compile_validation(validation, rank);
  });
  const std::string mine = measures_ ? options_.tuner->to_text(Tuner::Part::own) : "";
  for (const std::string& times : collective_.gather_all(mine, "the times of kernels"))
    if (!times.empty() && !options_.tuner->add_own(times)) throw_unreadable();
  options_.tuner->freeze();
}

// Returns the times for all kinds of processors, so that all ranks can use a checkpoint of rank 0.
std::string TrainingPrograms::times_in_use() const {
  if (options_.tuner == nullptr) return {};
  Tuner all(Tuning::off);
  const std::string mine = measures_ ? options_.tuner->to_text(Tuner::Part::used) : "";
  for (const std::string& times : collective_.gather_all(mine, "the times of kernels in use"))
    if (!times.empty() && !all.add(times)) throw_unreadable();
  return all.to_text();
}

// Compiles each size only once. Begins with the largest size, so that an error about memory is about this one.
void TrainingPrograms::compile_part(const BatchPlan& train, std::int64_t part) {
  const std::vector<std::int64_t> sizes = train.micro_batch_sizes(part);
  for (const std::int64_t samples : std::ranges::reverse_view(sizes))
    if (!gradients_.contains(samples))
      gradients_[samples] = compile_gradients(samples, train, &store_.placement());
}

void TrainingPrograms::compile_validation(const BatchPlan& validation, std::int64_t rank) {
  if (validation.samples == 0) return;
  for (const std::int64_t samples : validation.micro_batch_sizes(rank))
    if (samples > 0) evaluator_.compile_for(samples);
}

void TrainingPrograms::drop_sizes_of_others(const BatchPlan& train, const BatchPlan& validation) {
  if (validation.samples > 0) evaluator_.keep_sizes(sizes_of(validation, collective_.rank()));
  const std::set<std::int64_t> mine = own_sizes(train);
  std::erase_if(gradients_, [&](const auto& entry) { return !mine.contains(entry.first); });
}

std::set<std::int64_t> TrainingPrograms::own_sizes(const BatchPlan& train) const {
  std::set<std::int64_t> sizes;
  for (std::int64_t i = 0; i < options_.own_parts.count; ++i)
    sizes.merge(sizes_of(train, options_.own_parts.first + i));
  for (std::int64_t other = 0; options_.draws_parts && other < train.ranks; ++other)
    sizes.merge(sizes_of(train, other));
  return sizes;
}

void TrainingPrograms::make_machines(std::int64_t micro_batches) {
  const std::size_t of_parameters = parameter_bytes(store_.placement(), store_.states(), micro_batches > 1);
  allocate(parameters_text(of_parameters), [&] {
    step_ = std::make_unique<TrainingStep>(backend_, store_, strategy_, options_.bucket_bytes, options_.watch,
                                           options_.profile);
  });
  Graph graph;
  build_update(graph, options_.optimizer, store_.placement(), step_->border().buckets(),
               {.replaced = *replaced_, .is_weighted = evaluator_.is_weighted()});
  update_ = compile(graph, {}, backend_,
                    {.placement = &store_.placement(), .tuner = options_.tuner, .strict = options_.strict});
  std::size_t bytes = std::max(update_->arena_bytes, evaluator_.arena_bytes());
  std::size_t feed_bytes = evaluator_.feed_bytes();
  // The programs of micro-batches after the first one, by number of samples.
  std::map<std::int64_t, std::shared_ptr<const Program>> adding;
  for (const auto& [samples, program] : gradients_) {
    if (micro_batches > 1)
      adding[samples] = add_to_gradients(*program, step_->border().buckets(), backend_, options_.strict);
    bytes = std::max(bytes, (micro_batches > 1 ? adding[samples] : program)->arena_bytes);
    feed_bytes = std::max(feed_bytes, program->feed_bytes);
  }
  find_memory(bytes);
  check_memory(adding);
  const std::string plan = plan_text(gradients_.rbegin()->first, bytes, of_parameters,
                                     store_.types().precision(), options_.memory.has_value());
  allocate(plan, [&] {
    workspace_ = std::make_shared<Workspace>(backend_, bytes, feed_bytes);
    if (strategy_.parts.updates_late) make_updates_late();
    add_programs(micro_batches, adding);
    evaluator_.make_machines(workspace_);
  });
}

// Finds the memory of a step. `arena_bytes`: the largest arena of all programs.
void TrainingPrograms::find_memory(std::size_t arena_bytes) {
  const ProgramEstimates& estimates = largest().estimates;
  memory_.bytes = memory_.others + arena_bytes;
  memory_.unlimited_bytes = memory_.others + std::max(arena_bytes, estimates.unlimited_arena_bytes);
  memory_.share_again = estimates.seconds > 0 ? estimates.seconds_again / estimates.seconds : 0;
}

// Throws StepMemoryError for a program that no limit was given to, because it has no backward pass, or to
// which the sum of micro-batches was added.
void TrainingPrograms::check_memory(
    const std::map<std::int64_t, std::shared_ptr<const Program>>& adding) const {
  if (!options_.memory) return;
  const auto check = [&](const std::string& name, std::size_t arena_bytes, const std::string& helps) {
    if (arena_bytes > arena_limit(*options_.memory, memory_.others))
      throw too_much_memory(name, arena_bytes, false, helps);
  };
  // Neither of these depends on the size of a batch.
  check("the update", update_->arena_bytes, "");
  for (const auto& [samples, program] : adding) check("the sum over micro-batches", program->arena_bytes, "");
  check("a batch of the validation", evaluator_.arena_bytes(), remedies(gradients_.rbegin()->first));
}

StepMemoryError TrainingPrograms::too_much_memory(const std::string& program, std::size_t arena_bytes,
                                                  bool recomputes, const std::string& helps) const {
  return StepMemoryError({.program = program,
                          .memory = *options_.memory,
                          .least = memory_.others + arena_bytes,
                          .others = memory_.others,
                          .recomputes = recomputes,
                          .remedies = helps});
}

std::string TrainingPrograms::remedies(std::int64_t samples) const {
  return remedies_for(samples, *options_.memory, memory_.others);
}

void TrainingPrograms::make_updates_late() {
  why_not_late_ = plexaura::why_not_late(strategy_.parts, options_.optimizer, store_.types(), options_.watch,
                                         *gradients_.begin()->second, evaluator_.is_weighted());
  if (!why_not_late_.empty()) return;
  step_->update_late(compile_bucket_updates(options_.optimizer, store_.placement(), step_->border().buckets(),
                                            *replaced_, backend_, options_.tuner, options_.strict));
}

void TrainingPrograms::add_programs(std::int64_t micro_batches,
                                    const std::map<std::int64_t, std::shared_ptr<const Program>>& adding) {
  const auto add = [&](std::int64_t samples, bool is_first, const auto& program, const Program* update) {
    step_->add_program(samples, is_first, program, update, workspace_, &collective_);
  };
  for (const auto& [samples, program] : gradients_) {
    const bool has_shards = options_.own_parts.count > 1;
    if (micro_batches == 1) add(samples, true, program, update_.get());
    if (micro_batches > 1 || has_shards) add(samples, true, program, nullptr);
    if (micro_batches > 1) add(samples, false, adding.at(samples), update_.get());
    if (micro_batches > 2 || (micro_batches > 1 && has_shards))
      add(samples, false, adding.at(samples), nullptr);
  }
}

// Returns a hash of the kernels for these sizes. If `with_update` is true, it includes the update, whose
// kernels depend on the buckets.
std::uint64_t TrainingPrograms::hash_of_kernels(const std::set<std::int64_t>& sizes, bool with_update) const {
  std::string text = with_update ? fmt::format("{:x}", update_->plan_hash()) : "";
  for (const auto& [samples, program] : gradients_)
    if (sizes.contains(samples)) text += fmt::format(" {:x}", program->plan_hash());
  return fnv(text);
}

std::set<std::string> TrainingPrograms::ops_on_host() const {
  std::set<std::string> ops = evaluator_.ops_on_host();
  ops.merge(step_->ops_on_host());
  ops.merge(update_->ops_on_host());
  return ops;
}

LossScale TrainingPrograms::first_loss_scale(const BatchPlan& train) const {
  const std::int64_t samples = largest_size(train);
  return plexaura::first_loss_scale(build(samples).outputs, samples);
}

std::vector<Feed> TrainingPrograms::feeds(const std::vector<Tensor>& values) const {
  std::vector<Feed> feeds = feeds_of(fields_, values, store_.dtype());
  check_labels(labels_, feeds);
  return feeds;
}

// Returns the hash of the plan. Every rank hashes the graph of rank 0's first micro-batch, because its own
// sizes may differ.
std::uint64_t TrainingPrograms::hash_of_plan(std::int64_t samples) {
  const std::span<const Bucket> buckets = step_->border().buckets();
  const BuiltModel model = build(samples);
  evaluator_.know_metrics(model.outputs);
  const auto outputs = training_outputs(*model.graph, model.outputs, store_, samples);
  Graph update;
  build_update(update, options_.optimizer, store_.placement(), buckets,
               {.replaced = replaced_buffers(*model.graph), .is_weighted = evaluator_.is_weighted()});
  std::string text = to_text(store_.placement());
  for (const ProgramOutput& output : outputs)
    text += fmt::format("%{}.{} {} {}\n", output.node.value().node, output.node.value().output,
                        output.gradient_of, output.tail ? static_cast<int>(*output.tail) : -1);
  for (const Bucket& bucket : buckets) text += fmt::format("{} {}\n", bucket.offset, bucket.count);
  return fnv(fmt::format("{:x} {:x}", structure_hash(*model.graph), structure_hash(update)), fnv(text));
}

}  // namespace plexaura

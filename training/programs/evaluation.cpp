#include "training/programs/evaluation.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <ranges>
#include <utility>

#include "core/base/profile.h"
#include "core/compile/compile.h"
#include "training/data/sent_steps.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

Step next_step(StepSource& steps, Profile* profile) {
  const ProfileSpan span(profile, "waiting for data", "data");
  return steps.next();
}

// Evaluates the samples of this rank. If `is_sent` is true, another rank reads the samples and sends them to
// this one.
Evaluation evaluate_share(Evaluator& evaluator, StepSource& steps, const BatchPlan& plan, bool is_sent,
                          WorkProgress& progress) {
  Evaluation sums{.metrics = std::vector<double>(evaluator.sum_count())};
  for (std::int64_t i = 0; i < plan.steps_per_epoch(); ++i) {
    const std::int64_t first = plan.global_batch(i).first;
    if (is_sent) progress.await_others();
    const Step data = next_step(steps, evaluator.profile());
    progress.made();
    for (const MicroBatch& batch : data.micro_batches) {
      const Evaluation part = evaluator.evaluate(batch.fields, batch.samples, first + batch.first_sample);
      sums.loss += part.loss;
      sums.weight += part.weight;
      sums.samples += part.samples;
      for (std::size_t metric = 0; metric < sums.metrics.size(); ++metric)
        sums.metrics[metric] += part.metrics[metric];
      progress.made();
    }
  }
  if (is_sent) progress.await_others();  // waits until the samples of all other ranks are read
  return sums;
}

LoaderOptions in_order(const LoaderOptions& reading, const Collective& ranks,
                       std::shared_ptr<FeedMemory> memory) {
  return {.batch_size = reading.batch_size,
          .ranks = ranks.size(),
          .rank = ranks.rank(),
          .micro_batches = reading.micro_batches,
          .shuffle = false,
          .workers = reading.workers,
          .prefetch = reading.prefetch,
          .on_error = reading.on_error,
          .replace = false,
          .memory = std::move(memory)};
}

}  // namespace

Evaluator::Evaluator(ModelBuilder model, std::vector<Field> fields, ParameterStore& store, Backend& backend,
                     Collective& collective, bool watch, Profile* profile, Tuner* tuner, bool strict)
    : model_(std::move(model)),
      fields_(std::move(fields)),
      store_(store),
      backend_(backend),
      collective_(collective),
      watch_(watch),
      profile_(profile),
      tuner_(tuner),
      strict_(strict) {}

BuiltModel Evaluator::build(std::int64_t samples) const {
  return build_model(model_, fields_, samples, store_, Mode::inference);
}

void Evaluator::know_metrics(const LossOutputs& model) {
  Reported now{.values = model.validation.values, .is_weighted = !model.weight.is_empty(), .is_known = true};
  for (const Metric& metric : model.metrics) {
    now.names.push_back(metric.name);
    now.is_mean.push_back(!metric.mean.is_empty());
  }
  if (const Node& sums = model.validation.sums; !sums.is_empty())
    now.sums = static_cast<std::size_t>(sums.shape().elements());
  if (reported_.is_known && (now.names != reported_.names || now.is_mean != reported_.is_mean))
    throw UserError(fmt::format(
        "the model reported the metrics [{}] for one size of batch or mode, and [{}] for another; "
        "report the same ones, as means or sums, in one order",
        fmt::join(reported_.names, ", "), fmt::join(now.names, ", ")));
  if (reported_.is_known && now.is_weighted != reported_.is_weighted)
    throw UserError(
        "the model gives LossOutputs::weight for one size of batch or mode, and none for another; give it "
        "always, or never");
  if (reported_.is_known && now.sums != reported_.sums)
    throw UserError(fmt::format(
        "the model has {} sums for validation with one size of batch or mode, and {} with another; "
        "give them the same shape whatever the number of samples is",
        reported_.sums, now.sums));
  reported_ = std::move(now);
}

void Evaluator::know_metrics() {
  if (!reported_.is_known) know_metrics(build(1).outputs);
}

std::vector<MetricValue> Evaluator::values_of(std::span<const double> sums, double samples) const {
  const std::size_t means = reported_.names.size();
  std::vector<MetricValue> values = means_of(reported_.names, sums.first(means), samples);
  if (!reported_.values) return values;
  for (auto& [name, value] : reported_.values(sums.subspan(means), samples))
    values.push_back({std::move(name), value});
  return values;
}

void Evaluator::compile_for(std::int64_t samples) {
  if (programs_.contains(samples)) return;
  const auto [graph, model] = build(samples);
  know_metrics(model);
  std::vector<ProgramOutput> outputs{{.node = model.loss}};
  for (const Metric& metric : model.metrics)
    outputs.push_back({.node = metric.mean.is_empty() ? metric.sum : metric.mean});
  if (!model.validation.sums.is_empty()) outputs.push_back({.node = model.validation.sums});
  if (!model.weight.is_empty()) outputs.push_back({.node = model.weight});
  std::shared_ptr<const Program> program = compile(
      *graph, outputs, backend_, {.placement = &store_.placement(), .tuner = tuner_, .strict = strict_});
  if (collective_.size() > 1)
    check_calls_nobody(*program, "in inference mode",
                       "ranks evaluate different shares of the samples, each for itself; leave it out where "
                       "Graph::mode() is Mode::inference");
  programs_[samples] = std::move(program);
}

void check_calls_nobody(const Program& program, std::string_view where, std::string_view why) {
  for (const Instruction& instruction : program.instructions)
    for (const NodeId id : instruction.nodes)
      if (const NodeRecord& record = program.graph->record(id); record.op->traits().collective)
        throw UserError(fmt::format("the model calls all ranks {}, by {} of {}: {}", where, record.op->name(),
                                    to_string(record.origin), why));
}

void Evaluator::keep_sizes(const std::set<std::int64_t>& sizes) {
  std::erase_if(programs_, [&](const auto& entry) { return !sizes.contains(entry.first); });
}

std::size_t Evaluator::arena_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [samples, program] : programs_) bytes = std::max(bytes, program->arena_bytes);
  return bytes;
}

std::set<std::string> Evaluator::ops_on_host() const {
  std::set<std::string> ops;
  for (const auto& [samples, program] : programs_) ops.merge(program->ops_on_host());
  return ops;
}

std::size_t Evaluator::feed_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [samples, program] : programs_) bytes = std::max(bytes, program->feed_bytes);
  return bytes;
}

std::shared_ptr<FeedMemory> Evaluator::feed_memory() const {
  if (!workspace_) return nullptr;
  return {workspace_, &workspace_->feeds()};
}

void Evaluator::make_machines(std::shared_ptr<Workspace> workspace) {
  workspace_ = std::move(workspace);
  for (const auto& [samples, program] : programs_) machine_for(samples);
}

// Compiles for the largest size first: its program places the store, unless it is placed, and its workspace is large
// enough for all sizes.
void Evaluator::prepare(std::span<const std::int64_t> sizes) {
  for (const std::int64_t samples : std::views::reverse(sizes))
    if (samples > 0) machine_for(samples);
}

VM& Evaluator::machine_for(std::int64_t samples) {
  compile_for(samples);
  const std::shared_ptr<const Program>& program = programs_.at(samples);
  std::unique_ptr<VM>& machine = machines_[samples];
  if (machine) return *machine;
  if (!workspace_ || workspace_->bytes() < program->arena_bytes)
    workspace_ = std::make_shared<Workspace>(backend_, program->arena_bytes, program->feed_bytes);
  machine =
      std::make_unique<VM>(program, backend_, VmOptions{&store_, workspace_, &alone_, {}, watch_, profile_});
  return *machine;
}

Evaluation Evaluator::evaluate(const std::vector<Tensor>& fields, std::int64_t samples,
                               std::int64_t first_sample) {
  if (samples == 0) {
    know_metrics();
    return {.metrics = std::vector<double>(sum_count())};
  }
  VM& machine = machine_for(samples);
  Evaluation sums;
  machine.run(feeds_of(fields_, fields, store_.dtype()), {.step = 0, .first_sample = first_sample});
  const auto scalar = [&](std::size_t index) { return machine.output(index).to_doubles()[0]; };
  sums.samples = static_cast<double>(samples);
  sums.loss = is_weighted() ? scalar(0) : scalar(0) * sums.samples;
  const std::size_t metrics = reported_.names.size();
  for (std::size_t i = 0; i < metrics; ++i)
    sums.metrics.push_back(scalar(i + 1) * (reported_.is_mean[i] ? sums.samples : 1));
  if (reported_.sums > 0) {
    const std::vector<double> totals = machine.output(metrics + 1).to_doubles();
    sums.metrics.insert(sums.metrics.end(), totals.begin(), totals.end());
  }
  if (is_weighted()) sums.weight = scalar(metrics + (reported_.sums > 0 ? 2 : 1));
  return sums;
}

Validation validate(Evaluator& evaluator, const std::shared_ptr<const SampleSource>& samples,
                    Collective& ranks, const LoaderOptions& reading, Courier* courier) {
  std::map<std::int64_t, std::string> skipped;
  Evaluation mine;
  // Compiling, and computing one micro-batch, are one step of progress each.
  WorkProgress progress(deadlines_without_progress * ranks.deadline_seconds());
  const auto evaluate_own = [&] {
    SampleStream stream(courier, Courier::Stream::validation);
    if (!samples || samples->size() == 0)
      throw UserError(
          "there are no samples for validation; give some, in YAML with data.validation_share or "
          "data.validation_limit");
    const BatchPlan plan{samples->size(), reading.batch_size, ranks.size(), reading.micro_batches};
    plan.check();
    evaluator.prepare(plan.micro_batch_sizes(ranks.rank()));
    evaluator.know_metrics();
    progress.made();
    const auto steps = make_steps(samples, in_order(reading, ranks, evaluator.feed_memory()), stream);
    const bool is_sent = courier != nullptr && ranks.rank() > 0;
    mine = evaluate_share(evaluator, *steps, plan, is_sent, progress);
    skipped = steps->skipped();
  };
  on_some_ranks(ranks, true, "validation", evaluate_own, &progress);
  std::vector<double> all{mine.loss, mine.samples};
  all.insert(all.end(), mine.metrics.begin(), mine.metrics.end());
  if (evaluator.is_weighted()) all.push_back(mine.weight);
  ranks.sum(DType::float64, reinterpret_cast<std::byte*>(all.data()), static_cast<std::int64_t>(all.size()),
            "the validation of an epoch");
  Validation result;
  if (reading.on_error == OnError::skip)
    result.skipped = gather_skipped(ranks, skipped, "the validation samples that could not be read");
  if (all[1] == 0) {
    const UserError error(
        fmt::format("no validation sample can be read; the first error is: {}", result.skipped.first));
    agree_on_error(ranks, std::make_exception_ptr(error), "validation");
  }
  std::optional<double> weight;
  if (evaluator.is_weighted()) weight = all.back();
  if (weight == 0.0) {
    const UserError error(
        "nothing is validated: all labels of the validation samples are ignored, or their classes have the "
        "weight 0; check the labels, model.ignored_class and model.class_weights");
    agree_on_error(ranks, std::make_exception_ptr(error), "validation");
  }
  result.loss = mean_loss(all[0], all[1], weight);
  const std::span<const double> of_metrics = std::span<const double>(all).subspan(2, evaluator.sum_count());
  result.metrics = evaluator.values_of(of_metrics, all[1]);
  result.totals.assign(of_metrics.begin() + std::ssize(evaluator.metric_names()), of_metrics.end());
  return result;
}

std::vector<MetricValue> means_of(const std::vector<std::string>& names, std::span<const double> sums,
                                  double samples) {
  std::vector<MetricValue> means;
  for (std::size_t i = 0; i < names.size(); ++i) means.push_back({names[i], sums[i] / samples});
  return means;
}

}  // namespace plexaura

#include "training/data/loader.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/events.h"

namespace plexaura {

namespace {

constexpr std::int64_t most_prefetch = 1024;

std::shared_ptr<const SampleSource> require_source(std::shared_ptr<const SampleSource> source) {
  if (!source) throw UserError("a loader was made without a dataset; give it one");
  return source;
}

BatchPlan checked_plan(const SampleSource& source, const LoaderOptions& options) {
  const BatchPlan plan{source.size(), options.batch_size, options.ranks, options.micro_batches};
  plan.check();
  return plan;
}

void require(bool holds, const char* what, std::int64_t found, const std::string& rule) {
  if (!holds) throw UserError(fmt::format("the loader's {} is {}; it must be {}", what, found, rule));
}

void check_loader_options(const LoaderOptions& options, const BatchPlan& plan) {
  require(options.rank >= 0 && options.rank < options.ranks, "rank", options.rank,
          fmt::format("from 0 to {}", options.ranks - 1));
  require(options.own_parts >= 1 && options.rank + options.own_parts <= options.ranks, "number of parts",
          options.own_parts, fmt::format("from 1 to {}", options.ranks - options.rank));
  if (options.weights)
    require(std::ssize(*options.weights) == plan.samples, "number of weights", std::ssize(*options.weights),
            fmt::format("that of the samples, {}", plan.samples));
  require(options.workers >= 0, "number of workers", options.workers, "0 or more");
  require(options.prefetch >= 1 && options.prefetch <= most_prefetch, "prefetch", options.prefetch,
          fmt::format("from 1 to {} steps", most_prefetch));
  require(options.first_epoch >= 0, "first epoch", options.first_epoch, "0 or more");
  require(options.first_step >= 0 && options.first_step <= plan.steps_per_epoch(), "first step",
          options.first_step, fmt::format("from 0 to {}, the steps of an epoch", plan.steps_per_epoch()));
}

// True if copying the samples of a step takes less time than waking a thread.
bool is_copied_at_once(const SampleSource& source, std::span<const Field> fields, const BatchPlan& plan) {
  constexpr std::int64_t most_bytes = 64 << 10;
  std::int64_t bytes = 0;
  for (const Field& field : fields) bytes += field.type.bytes();
  return source.in_memory() && bytes * plan.batch_size <= most_bytes * plan.ranks;
}

Tensor rows_of(const Tensor& whole, std::span<const std::int64_t> rows, const TensorType& of_row) {
  Tensor part({of_row.dtype, batched(static_cast<std::int64_t>(rows.size()), of_row.shape)});
  const auto bytes = static_cast<std::size_t>(of_row.bytes());
  std::byte* to = part.data();
  for (const std::int64_t row : rows)
    to = std::copy_n(whole.data() + static_cast<std::size_t>(row) * bytes, bytes, to);
  return part;
}

}  // namespace

Loader::Loader(std::shared_ptr<const SampleSource> source, const LoaderOptions& options)
    : source_(require_source(std::move(source))),
      options_(options),
      plan_(checked_plan(*source_, options)),
      fields_(source_->fields()),
      reader_(*source_, plan_, options.seed, options.on_error, options.replace),
      epoch_(options.first_epoch),
      step_(options.first_step),
      part_(options.parts == Parts::all ? 0 : options.rank) {
  check_loader_options(options_, plan_);
  if (is_copied_at_once(*source_, fields_, plan_)) options_.workers = 0;
  if (step_ == plan_.steps_per_epoch()) {
    step_ = 0;
    ++epoch_;
  }
  if (options_.workers == 0) return;
  schedule_ahead();
  start_workers();
}

void Loader::start_workers() {
  workers_.reserve(static_cast<std::size_t>(options_.workers));
  try {
    for (std::int64_t i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    throw UserError(
        fmt::format("only {} of {} threads that read data could be started ({}); ask for fewer workers",
                    workers_.size(), options_.workers, error.what()));
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Step Loader::next() {
  schedule_ahead();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (options_.workers > 0) lock.lock();  // without workers, only this thread uses pending_
  const auto start = std::chrono::steady_clock::now();
  {
    const EventSpan span(EventKind::data, "samples");
    wait_for_front(lock);
  }
  stall_seconds_ =
      stall_seconds_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Pending& front = pending_.front();
  if (front.error) std::rethrow_exception(front.error);
  close_gaps(front);
  Step step = std::move(front.step);
  pending_.pop_front();
  return step;
}

void Loader::wait_for_front(std::unique_lock<std::mutex>& lock) {
  if (options_.workers > 0) {
    step_ready_.wait(lock, [this] { return pending_.front().complete(); });
  } else if (Pending& front = pending_.front(); !front.complete()) {
    finish(front, front.share, read(front, front.share));
  }
}

std::size_t Loader::most_pending() const {
  const std::int64_t parts = options_.parts == Parts::all ? options_.ranks : 1;
  return static_cast<std::size_t>(options_.workers > 0 ? (options_.prefetch + 1) * parts : 1);
}

void Loader::schedule_ahead() {
  while (options_.parts != Parts::drawn && has_room()) {
    schedule(part_);
    advance();
  }
}

void Loader::read_ahead(std::int64_t epoch, std::int64_t step, std::int64_t part) {
  if (epoch != epoch_) begin_epoch(epoch);
  step_ = step;
  schedule(part);
}

void Loader::schedule(std::int64_t part) {
  if (!order_)
    order_ = std::make_shared<const std::vector<std::int64_t>>(
        options_.weights ? weighted_order(*options_.weights, options_.seed, epoch_)
                         : epoch_order(plan_.samples, options_.shuffle, options_.seed, epoch_));
  Pending pending;
  pending.order = order_;
  pending.part = part;
  pending.share = {plan_.rank_share(step_, part).first, 0};
  pending.step = step_without_fields(plan_, epoch_, step_, part, options_.own_parts);
  for (MicroBatch& batch : pending.step.micro_batches) {
    pending.share.count += batch.samples;
    batch.fields = make_fields(fields_, batch.samples, options_.memory.get());
  }
  if (options_.workers == 0) {
    pending_.push_back(std::move(pending));
  } else {
    {
      const std::lock_guard lock(mutex_);
      pending_.push_back(std::move(pending));
    }
    work_ready_.notify_all();
  }
}

void Loader::advance() {
  if (options_.parts == Parts::all && ++part_ < options_.ranks) return;
  if (options_.parts == Parts::all) part_ = 0;
  if (++step_ == plan_.steps_per_epoch()) begin_epoch(epoch_ + 1);
}

void Loader::begin_epoch(std::int64_t epoch) {
  step_ = 0;
  epoch_ = epoch;
  order_.reset();
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [this] { return stopping_ || unclaimed() != nullptr; });
    if (stopping_) return;
    Pending& pending = *unclaimed();
    const Slice positions = claim(pending);
    lock.unlock();
    Outcome outcome = read(pending, positions);
    lock.lock();
    finish(pending, positions, std::move(outcome));
  }
}

Loader::Pending* Loader::unclaimed() {
  const auto found = std::ranges::find_if(
      pending_, [](const Pending& pending) { return pending.claimed < pending.share.count; });
  return found == pending_.end() ? nullptr : &*found;
}

// Takes a few samples at a time: more than one, so that cheap samples do not wait for the lock, and not too
// many, so that the end of a step does not wait for one worker.
Slice Loader::claim(Pending& pending) const {
  const std::int64_t left = pending.share.count - pending.claimed;
  const std::int64_t fair = pending.share.count / (4 * options_.workers);
  const Slice positions{pending.share.first + pending.claimed, std::clamp<std::int64_t>(fair, 1, left)};
  pending.claimed += positions.count;
  return positions;
}

Loader::Outcome Loader::read(Pending& pending, Slice positions) {
  Outcome outcome;
  std::vector<std::span<std::byte>> values(fields_.size());
  std::int64_t position = positions.first;
  try {
    for (; position < positions.first + positions.count && !stopping_; ++position)
      if (!read_sample(pending, position, values)) outcome.left_out.push_back(position);
  } catch (...) {
    outcome.failed_position = position;
    outcome.error = std::current_exception();
  }
  return outcome;
}

// Reads a sample. Returns false if the sample is left out.
bool Loader::read_sample(Pending& pending, std::int64_t position, std::span<std::span<std::byte>> values) {
  const Step& step = pending.step;
  const std::int64_t in_batch = position - plan_.global_batch(step.step_in_epoch).first;
  const auto after = std::ranges::find_if(
      pending.step.micro_batches, [&](const MicroBatch& batch) { return in_batch < batch.first_sample; });
  const auto holder = std::prev(after);  // empty micro-batches begin after the last sample of their part
  const auto row = static_cast<std::size_t>(in_batch - holder->first_sample);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(fields_[i].type.bytes());
    values[i] = {holder->fields[i].data() + row * bytes, bytes};
  }
  const std::int64_t part =
      pending.part + (holder - pending.step.micro_batches.begin()) / plan_.micro_batches;
  return reader_.read({*pending.order, step.epoch, step.step_in_epoch, position, part}, values);
}

// Keeps the error of the earliest sample, so that a step fails with the same error for any number of workers.
void Loader::finish(Pending& pending, Slice positions, Outcome outcome) {
  pending.finished += positions.count;
  pending.left_out.insert(pending.left_out.end(), outcome.left_out.begin(), outcome.left_out.end());
  if (outcome.error && (!pending.error || outcome.failed_position < pending.failed_position)) {
    pending.failed_position = outcome.failed_position;
    pending.error = std::move(outcome.error);
  }
  if (pending.complete()) step_ready_.notify_all();
}

// Removes the rows of samples that were left out from every micro-batch.
void Loader::close_gaps(Pending& pending) {
  if (pending.left_out.empty()) return;
  const std::int64_t first = plan_.global_batch(pending.step.step_in_epoch).first;
  for (MicroBatch& batch : pending.step.micro_batches) {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < batch.samples; ++row)
      if (std::ranges::find(pending.left_out, first + batch.first_sample + row) == pending.left_out.end())
        rows.push_back(row);
    batch.samples = static_cast<std::int64_t>(rows.size());
    for (std::size_t i = 0; i < fields_.size(); ++i)
      batch.fields[i] = rows_of(batch.fields[i], rows, fields_[i].type);
  }
}

}  // namespace plexaura

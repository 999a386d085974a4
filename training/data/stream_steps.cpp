#include "training/data/stream_steps.h"

#include <fmt/format.h>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/events.h"

namespace plexaura {

namespace {

// Calls a function, unless it is empty, after each sample. The function may be replaced meanwhile.
class WatchedReader final : public StreamReader {
 public:
  WatchedReader(std::unique_ptr<StreamReader> reader, const std::function<void()>& on_sample)
      : reader_(std::move(reader)), on_sample_(on_sample) {}

  bool next(std::span<const std::span<std::byte>> values) override {
    const bool has_sample = reader_->next(values);
    if (on_sample_) on_sample_();
    return has_sample;
  }

 private:
  std::unique_ptr<StreamReader> reader_;
  const std::function<void()>& on_sample_;
};

}  // namespace

StreamSteps::StreamSteps(std::shared_ptr<const StreamSource> source, const StreamOptions& options)
    : source_(std::move(source)), options_(options), fields_(source_->fields()) {
  for (const Field& field : fields_) passed_.emplace_back(static_cast<std::size_t>(field.type.bytes()));
}

void StreamSteps::open() {
  reader_ = std::make_unique<WatchedReader>(source_->open(options_.rank, options_.plan.ranks), on_sample_);
  if (options_.shuffle_buffer > 1)
    reader_ = shuffled(std::move(reader_), fields_, options_.shuffle_buffer, options_.seed);
}

bool StreamSteps::has_next(const std::function<void()>& on_sample) {
  if (ahead_ || error_ || has_ended_) return !has_ended_;
  const EventSpan span(EventKind::data, "samples");
  const double begin = seconds_now();
  on_sample_ = on_sample;
  try {
    if (reader_ == nullptr) open();
    has_ended_ = !read();
  } catch (const StreamInterrupted&) {
    has_ended_ = was_interrupted_ = true;
  } catch (...) {
    error_ = std::current_exception();
  }
  on_sample_ = nullptr;
  stall_seconds_ = stall_seconds_ + seconds_now() - begin;
  return !has_ended_;
}

void StreamSteps::check() const {
  if (error_) std::rethrow_exception(error_);
}

Step StreamSteps::next() {
  if (!has_next()) throw InternalError("a step was asked of a stream that has ended");
  check();
  return *std::exchange(ahead_, std::nullopt);
}

bool StreamSteps::read() {
  if (!pass_over(std::exchange(options_.used, 0)))
    throw UserError(
        "the stream has fewer samples than the run has used before; resume with the stream of that run, or "
        "start from its weights with --weights");
  Step step = step_without_fields(options_.plan, options_.first_epoch, options_.first_step, options_.rank);
  const Slice batch = options_.plan.global_batch(options_.first_step);
  const Slice share = options_.plan.rank_share(options_.first_step, options_.rank);
  const bool skips = !source_->is_divided();
  if (skips && !pass_over(share.first - batch.first)) return false;
  if (!read_batches(step)) return false;
  if (skips && !pass_over(batch.first + batch.count - share.first - share.count)) return false;
  ahead_ = std::move(step);
  if (++options_.first_step == options_.plan.steps_per_epoch()) {
    options_.first_step = 0;
    ++options_.first_epoch;
  }
  return true;
}

bool StreamSteps::read_batches(Step& step) {
  std::vector<std::span<std::byte>> values(fields_.size());
  for (MicroBatch& batch : step.micro_batches) {
    batch.fields = make_fields(fields_, batch.samples, options_.memory.get());
    for (std::int64_t row = 0; row < batch.samples; ++row) {
      for (std::size_t i = 0; i < fields_.size(); ++i)
        values[i] = {batch.fields[i].data() + row * fields_[i].type.bytes(), passed_[i].size()};
      if (!reader_->next(values)) return false;
    }
  }
  return true;
}

bool StreamSteps::pass_over(std::int64_t samples) {
  const std::vector<std::span<std::byte>> values(passed_.begin(), passed_.end());
  for (; samples > 0; --samples)
    if (!reader_->next(values)) return false;
  return true;
}

}  // namespace plexaura

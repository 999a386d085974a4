#include "training/data/sent_steps.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <fmt/format.h>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

// The beginning of a parcel. For each micro-batch, the number of its samples and then its fields follow.
struct StepHead {
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t global_samples = 0;
};

template <class T>
void append(std::vector<std::byte>& parcel, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  parcel.insert(parcel.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> pack(const Step& step) {
  std::vector<std::byte> parcel;
  append(parcel, StepHead{step.epoch, step.step_in_epoch, step.global_samples});
  for (const MicroBatch& batch : step.micro_batches) {
    append(parcel, batch.samples);
    for (const Tensor& field : batch.fields)
      parcel.insert(parcel.end(), field.data(), field.data() + field.bytes());
  }
  return parcel;
}

// Reads a parcel from beginning to end. Throws UserError if the parcel does not contain the requested data.
class OpenParcel {
 public:
  explicit OpenParcel(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value;
    take_into(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void take_into(std::span<std::byte> to) {
    require(to.size() <= bytes_.size());
    std::copy_n(bytes_.begin(), to.size(), to.begin());
    bytes_ = bytes_.subspan(to.size());
  }
  void require_end() const { require(bytes_.empty()); }
  static void require(bool holds) {
    if (!holds)
      throw UserError(
          "rank 0 has sent samples that are not those this rank expects: give all ranks a data set of the "
          "same size and fields");
  }

 private:
  std::span<const std::byte> bytes_;
};

LoaderOptions for_all_ranks(LoaderOptions options) {
  options.parts = Parts::all;
  return options;
}

// The source on rank 0: reads the samples of all ranks, and sends each other rank its part of the step.
class StepSender final : public StepSource {
 public:
  StepSender(std::shared_ptr<const SampleSource> samples, const LoaderOptions& options, SampleStream& stream)
      : stream_(stream), loader_(std::move(samples), for_all_ranks(options)) {}

  Step next() override {
    while (!failure_ && own_.size() <= steps_ahead) send_step();
    if (own_.empty()) std::rethrow_exception(failure_);
    Step step = std::move(own_.front());
    own_.pop_front();
    return step;
  }
  double stall_seconds() const override { return loader_.stall_seconds(); }
  std::map<std::int64_t, std::string> skipped() const override { return loader_.skipped(); }

 private:
  static constexpr std::size_t steps_ahead = 1;

  void send_step() {
    std::vector<Step> parts;
    try {
      for (std::int64_t rank = 0; rank < loader_.plan().ranks; ++rank) parts.push_back(loader_.next());
    } catch (...) {
      failure_ = std::current_exception();
      return stream_.close();
    }
    for (std::size_t rank = 1; rank < parts.size(); ++rank)
      stream_.send(static_cast<int>(rank), pack(parts[rank]));
    own_.push_back(std::move(parts[0]));
  }

  SampleStream& stream_;
  Loader loader_;
  std::deque<Step> own_;  // steps whose parts were sent and that next() has not returned yet
  std::exception_ptr failure_;
};

// The source on all ranks but 0: unpacks what rank 0 sends.
class StepReceiver final : public StepSource {
 public:
  StepReceiver(const SampleSource& samples, const LoaderOptions& options, SampleStream& stream)
      : stream_(stream),
        fields_(samples.fields()),
        plan_{samples.size(), options.batch_size, options.ranks, options.micro_batches},
        rank_(options.rank),
        memory_(options.memory) {
    plan_.check();
  }

  Step next() override {
    const double begin = seconds_now();
    const auto parcel = stream_.receive("samples from rank 0");
    if (!parcel) throw InternalError("rank 0 sends no more samples, because it has failed");
    stall_seconds_ = stall_seconds_ + seconds_now() - begin;
    return unpack(OpenParcel(*parcel));
  }
  double stall_seconds() const override { return stall_seconds_.load(); }
  std::map<std::int64_t, std::string> skipped() const override { return {}; }

 private:
  Step unpack(OpenParcel parcel) const {
    const auto head = parcel.take<StepHead>();
    OpenParcel::require(head.step_in_epoch < plan_.steps_per_epoch() &&
                        head.global_samples == plan_.global_batch(head.step_in_epoch).count);
    Step step = step_without_fields(plan_, head.epoch, head.step_in_epoch, rank_);
    for (MicroBatch& batch : step.micro_batches) {
      const auto samples = parcel.take<std::int64_t>();
      OpenParcel::require(samples >= 0 && samples <= batch.samples);
      batch.samples = samples;
      batch.fields = make_fields(fields_, samples, memory_.get());
      for (Tensor& field : batch.fields) parcel.take_into({field.data(), field.bytes()});
    }
    parcel.require_end();
    return step;
  }

  SampleStream& stream_;
  std::vector<Field> fields_;
  BatchPlan plan_;
  std::int64_t rank_;
  std::shared_ptr<FeedMemory> memory_;
  std::atomic<double> stall_seconds_ = 0;
};

}  // namespace

SampleStream::~SampleStream() {
  if (courier_ != nullptr && !closed_)
    courier_->close(stream_, std::uncaught_exceptions() > exceptions_at_start_);
}

std::optional<std::vector<std::byte>> SampleStream::receive(std::string_view what) {
  if (closed_) return std::nullopt;
  auto parcel = courier_->receive(stream_, what);
  closed_ = !parcel;
  return parcel;
}

void SampleStream::close() {
  courier_->close(stream_, false);
  closed_ = true;
}

std::unique_ptr<StepSource> make_steps(std::shared_ptr<const SampleSource> samples,
                                       const LoaderOptions& options, SampleStream& stream) {
  if (!stream.has_courier()) return std::make_unique<Loader>(std::move(samples), options);
  if (options.rank == 0) return std::make_unique<StepSender>(std::move(samples), options, stream);
  return std::make_unique<StepReceiver>(*samples, options, stream);
}

}  // namespace plexaura

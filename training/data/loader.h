#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/vm/feed_memory.h"
#include "training/data/sample_reader.h"
#include "training/data/sample_source.h"
#include "training/data/sampler.h"
#include "training/data/step_source.h"

namespace plexaura {

// Which parts of the batches next() gives.
enum class Parts : std::uint8_t {
  own,   // that of the loader's rank, in each step
  all,   // those of all ranks, one after the other, in each step
  drawn  // those that read_ahead() names
};

struct LoaderOptions {
  std::int64_t batch_size = 1;  // samples of a step over all ranks
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  std::int64_t own_parts = 1;      // of each step: this rank's, and those of ranks behind it
  std::int64_t micro_batches = 1;  // into which this rank's share of a step is cut
  std::uint64_t seed = 0;          // of the order and of augmentation
  bool shuffle = true;
  // Threads that read ahead; 0: next() reads on the calling thread. So it does, too, where samples lie in memory
  // and those of a step are copied sooner than a thread wakes up.
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;  // steps read ahead of the one that next() gives from
  OnError on_error = OnError::fail;
  // With OnError::skip: whether another sample of the rank takes the place of one that cannot be read, so
  // that the sizes of batches never change. Otherwise it is left out, and its micro-batch is smaller by one.
  bool replace = true;
  // Where to begin; a resumed run gives the epoch and the step that it would do next.
  std::int64_t first_epoch = 0;
  std::int64_t first_step = 0;
  Parts parts = Parts::own;
  // Where batches lie: that of the programs which they are fed to, so that nobody copies them. Null: each has memory of
  // its own.
  std::shared_ptr<FeedMemory> memory = {};
};

// Reads samples step after step, epoch after epoch without end, ahead of who asks. What next() gives is a
// function of source, options and position alone, whatever the number of workers. The constructor throws
// UserError for an impossible option. One thread makes and destroys the loader and calls next(), has_room(), is_empty()
// and read_ahead(); stall_seconds() and skipped() may be called from any thread. Destruction waits at most for the
// samples that are just being read.
class Loader final : public StepSource {
 public:
  Loader(std::shared_ptr<const SampleSource> source, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() override;

  const BatchPlan& plan() const { return plan_; }

  // Where parts are drawn: whether there is room to read another one ahead, and begins to read this one.
  bool has_room() const { return pending_.size() < most_pending(); }
  void read_ahead(std::int64_t epoch, std::int64_t step, std::int64_t part);
  // Nothing is read ahead: next() would have nothing to give.
  bool is_empty() const { return pending_.empty(); }

  // Rethrows, as it was thrown, the error of the first sample of the step that could not be read; so does every later
  // call.
  Step next() override;

  // All of its reading when there are no workers.
  double stall_seconds() const override { return stall_seconds_.load(); }
  std::map<std::int64_t, std::string> skipped() const override { return reader_.skipped(); }

 private:
  struct Pending {
    Step step;
    std::shared_ptr<const std::vector<std::int64_t>> order;
    std::int64_t part = 0;  // the first
    Slice share;
    std::int64_t claimed = 0;
    std::int64_t finished = 0;
    std::int64_t failed_position = 0;
    std::exception_ptr error;
    std::vector<std::int64_t> left_out;  // positions

    bool complete() const { return finished == share.count; }
  };
  // Of reading a few samples.
  struct Outcome {
    std::int64_t failed_position = 0;
    std::exception_ptr error;
    std::vector<std::int64_t> left_out;
  };

  std::size_t most_pending() const;
  void schedule_ahead();
  void schedule(std::int64_t part);
  void advance();
  void begin_epoch(std::int64_t epoch);
  Pending* unclaimed();
  Slice claim(Pending& pending) const;
  Outcome read(Pending& pending, Slice positions);
  bool read_sample(Pending& pending, std::int64_t position, std::span<std::span<std::byte>> values);
  void finish(Pending& pending, Slice positions, Outcome outcome);
  void close_gaps(Pending& pending);
  void work();
  void wait_for_front(std::unique_lock<std::mutex>& lock);
  void start_workers();
  void stop();

  std::shared_ptr<const SampleSource> source_;
  LoaderOptions options_;
  BatchPlan plan_;
  std::vector<Field> fields_;
  SampleReader reader_;

  // The position of the next part to schedule, and that epoch's order; used by the calling thread alone.
  std::int64_t epoch_;
  std::int64_t step_;
  std::int64_t part_;
  std::shared_ptr<const std::vector<std::int64_t>> order_;

  std::mutex mutex_;  // guards pending_ and its counts
  std::condition_variable work_ready_;
  std::condition_variable step_ready_;
  std::deque<Pending> pending_;  // a deque, for workers hold references across push_back and pop_front
  std::atomic<bool> stopping_ = false;
  std::atomic<double> stall_seconds_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace plexaura

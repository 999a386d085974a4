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

// The parts of a step's batch that next() returns.
enum class Parts : std::uint8_t {
  own,   // own_parts parts of each step, from that of the loader's rank on
  all,   // the parts of all ranks, one after the other, in each step
  drawn  // the parts that read_ahead() names
};

struct LoaderOptions {
  std::int64_t batch_size = 1;  // number of samples of a step over all ranks
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  // Number of parts in each step that this rank reads: its own, and those of the ranks after it.
  std::int64_t own_parts = 1;
  std::int64_t micro_batches = 1;  // number of micro-batches in each part of a step
  std::uint64_t seed = 0;          // seed of the order and of augmentation
  bool shuffle = true;
  // The weights of the samples, one for each sample. If set, the samples of an epoch are those of
  // weighted_order(), and `shuffle` has no effect. Null: each sample comes once.
  std::shared_ptr<const std::vector<double>> weights = {};
  // Number of threads that read ahead; 0: next() reads on the calling thread. next() also reads there if samples are in
  // memory and copying those of a step takes less time than waking a thread.
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;  // number of steps read ahead of the current one
  OnError on_error = OnError::fail;
  // The treatment of samples that cannot be read, with OnError::skip. True: another sample of the part
  // replaces such a sample, so that batch sizes never change. False: the sample is left out, and its
  // micro-batch has one sample less.
  bool replace = true;
  // The position of the first step. A resumed run passes the epoch and the step that it makes next.
  std::int64_t first_epoch = 0;
  std::int64_t first_step = 0;
  Parts parts = Parts::own;
  // The memory for batches. With the memory of the programs, batches need not be copied. Null: each batch has
  // memory of its own.
  std::shared_ptr<FeedMemory> memory = {};
};

// Reads samples ahead of the caller, step by step and epoch by epoch, without end. The result of next()
// depends on source, options and position, and not on the number of workers. The constructor throws UserError
// for an impossible option. One thread makes and destroys the loader, and calls next(), has_room(),
// is_empty() and read_ahead(). stall_seconds() and skipped() may be called from any thread. The destructor
// waits at most for the samples that are being read.
class Loader final : public StepSource {
 public:
  Loader(std::shared_ptr<const SampleSource> source, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() override;

  const BatchPlan& plan() const { return plan_; }

  // has_room() returns true if another part may be read ahead. read_ahead() begins to read a part. Used with
  // Parts::drawn.
  bool has_room() const { return pending_.size() < most_pending(); }
  void read_ahead(std::int64_t epoch, std::int64_t step, std::int64_t part);
  // True if nothing is read ahead, so that next() has nothing to return.
  bool is_empty() const { return pending_.empty(); }

  // Throws the original error of the first sample of the step that could not be read; so does every later
  // call.
  Step next() override;

  // Returns the seconds that next() has waited. Without workers, this includes all time for reading.
  double stall_seconds() const override { return stall_seconds_.load(); }
  std::map<std::int64_t, std::string> skipped() const override { return reader_.skipped(); }

 private:
  struct Pending {
    Step step;
    std::shared_ptr<const std::vector<std::int64_t>> order;
    std::int64_t part = 0;  // number of the step's first part
    Slice share;
    std::int64_t claimed = 0;
    std::int64_t finished = 0;
    std::int64_t failed_position = 0;
    std::exception_ptr error;
    std::vector<std::int64_t> left_out;  // positions of samples that were left out

    bool complete() const { return finished == share.count; }
  };
  // The result of reading a few samples.
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

  // The position of the next part to schedule, and the order of its epoch. Used only by the calling thread.
  std::int64_t epoch_;
  std::int64_t step_;
  std::int64_t part_;
  std::shared_ptr<const std::vector<std::int64_t>> order_;

  std::mutex mutex_;  // guards pending_ and the counts in it
  std::condition_variable work_ready_;
  std::condition_variable step_ready_;
  std::deque<Pending> pending_;  // a deque, because workers hold references during push_back and pop_front
  std::atomic<bool> stopping_ = false;
  std::atomic<double> stall_seconds_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace plexaura

#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/data/sampler.h"
#include "training/data/step_source.h"
#include "training/data/stream_source.h"

namespace plexaura {

struct StreamOptions {
  BatchPlan plan = {};  // plan of an epoch, which consists of whole batches
  std::int64_t rank = 0;
  std::int64_t first_epoch = 0;
  std::int64_t first_step = 0;
  std::int64_t used = 0;  // the number of samples to pass over first, because the run has used them before
  std::int64_t shuffle_buffer = 1;  // number of samples that shuffled() keeps; 1: the order of the stream
  std::uint64_t seed = 0;           // seed of shuffled()
  std::shared_ptr<FeedMemory> memory = {};
};

// Makes this rank's parts of steps from a stream. The stream ends with its last whole batch: the samples after it are
// not used. Reads on the calling thread, one step ahead of next().
class StreamSteps final : public StepSource {
 public:
  // The stream is opened when its first step is read.
  StreamSteps(std::shared_ptr<const StreamSource> source, const StreamOptions& options);

  // Reads the next step, unless it is read already, and waits for its samples. Calls `on_sample` for each sample that it
  // reads or passes over. Returns false if the stream has too few samples for the step, or was interrupted. If it cannot be
  // read, returns true, and next() throws the reason.
  bool has_next(const std::function<void()>& on_sample = {});
  // True if has_next() has returned false because the reader has thrown StreamInterrupted.
  bool was_interrupted() const { return was_interrupted_; }
  // Called after has_next() has returned true.
  Step next() override;
  // Throws the reason if the next step could not be read.
  void check() const;

  double stall_seconds() const override { return stall_seconds_.load(); }
  std::map<std::int64_t, std::string> skipped() const override { return {}; }

 private:
  void open();
  bool read();
  bool read_batches(Step& step);
  bool pass_over(std::int64_t samples);

  std::shared_ptr<const StreamSource> source_;
  StreamOptions options_;
  std::vector<Field> fields_;
  std::function<void()> on_sample_;             // argument of the call of has_next() that reads
  std::unique_ptr<StreamReader> reader_;        // null before the first step is read
  std::vector<std::vector<std::byte>> passed_;  // memory for a sample that is not used
  std::optional<Step> ahead_;
  std::exception_ptr error_;
  bool has_ended_ = false;  // has_next() returns false
  bool was_interrupted_ = false;
  std::atomic<double> stall_seconds_ = 0;
};

}  // namespace plexaura

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>

#include "core/base/events.h"
#include "training/files/file.h"

namespace plexaura {

// Keeps the last events of this process in a memory-mapped file, so that they survive however the process
// ends. tools/run_parts/events.py reads it. The file has a header, the tensors of the first buckets, and
// slots that are written in turn; numbers are little-endian.
class EventFile final : public EventSink {
 public:
  struct Header {
    char magic[8] = {'P', 'L', 'X', 'E', 'V', 'E', 'N', 'T'};
    std::uint32_t version = 1;
    std::uint32_t slots = slot_count;
    std::int32_t rank = 0;
    std::int32_t ranks = 0;          // number of ranks; 0: unknown
    std::int64_t process = 0;        // process id, which is also the id of the main thread
    std::int64_t process_start = 0;  // field 22 of /proc/PROCESS/stat, because process ids are reused
    std::int64_t wall_time = 0;      // nanoseconds since 1970, at the start
    std::int64_t time = 0;           // the same moment on the clock of the events
    std::int64_t oom_kills = 0;      // processes that the system had killed for lack of memory, at the start
    std::atomic<std::int64_t> beat = 0;   // seconds from `time` to the last beat; a beat comes every second
    std::atomic<std::int64_t> step = 0;   // the last step that began
    std::atomic<std::int64_t> saved = 0;  // number of updates in the last checkpoint that this run has saved
    std::atomic<std::uint64_t> next = 0;  // number of events so far
    char host[64] = {};
    // The process-id namespace, as "BOOT_ID pid:[NUMBER]". A process with the same text sees this process
    // under its id.
    char place[128] = {};
    char job[64] = {};  // the launcher's name of the job; empty without a launcher
    // CLOCK_MONOTONIC, in nanoseconds, when this rank last continued after ranks had died; 0: never.
    std::atomic<std::int64_t> survived = 0;
    std::atomic<std::int64_t> left = 0;  // number of ranks that were left then, including spares
    // 1 if this rank stores weights or sums for the other ranks, and makes no steps itself.
    std::atomic<std::int64_t> serves = 0;
  };
  struct Bucket {
    char tensors[128] = {};
  };
  struct Slot {
    std::atomic<std::uint64_t> sequence = 0;  // number of the event, from 1; 0 while it is written
    std::int64_t time = 0;                    // CLOCK_MONOTONIC, nanoseconds
    std::int64_t number = 0;
    std::uint32_t kind = 0;  // an EventKind
    std::int32_t thread = 0;
    char text[480] = {};  // UTF-8, cut if too long; ends with a zero byte
  };
  static constexpr std::size_t file_bytes = std::size_t{64} << 10;
  static constexpr std::size_t header_bytes = 512;
  static constexpr std::size_t bucket_count = 32;
  static constexpr std::size_t slots_at = header_bytes + bucket_count * sizeof(Bucket);
  static constexpr std::size_t slot_count = (file_bytes - slots_at) / sizeof(Slot);

  // Creates the file of the rank, such as FOLDER/rank-0003, and receives the events of the process until it is destroyed.
  // If the file cannot be created, or if another process writes to it, no events are kept, and nothing is thrown. Must be
  // made by the main thread: steps, phases and waits, also for data, of other threads are not kept. `ranks` is the
  // number of ranks, or 0 if unknown. `job` is equal for all ranks of the job.
  EventFile(const std::filesystem::path& folder, int rank, int ranks, std::string_view job);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile() override;

  bool keeps() const { return header_ != nullptr; }
  void event(EventKind kind, std::int64_t number, std::string_view text) noexcept override;

 private:
  bool open(const std::filesystem::path& path);
  void beat(const std::stop_token& stop);

  const std::thread::id main_thread_ = std::this_thread::get_id();
  FileDescriptor file_;  // locked as long as it is open
  std::byte* memory_ = nullptr;
  Header* header_ = nullptr;
  Bucket* buckets_ = nullptr;
  Slot* slots_ = nullptr;
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  std::jthread beating_;
};

}  // namespace plexaura

#include "training/files/event_file.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/process_state.h"
#include "training/files/folder_lock.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

static_assert(sizeof(EventFile::Header) <= EventFile::header_bytes && sizeof(EventFile::Slot) == 512);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void copy_text(std::span<char> to, std::string_view text) noexcept {
  const std::size_t count = std::min(text.size(), to.size() - 1);
  std::copy_n(text.begin(), count, to.begin());
  to[count] = '\0';
}

std::int64_t count_oom_kills() {
  std::ifstream counters("/proc/vmstat");
  std::string name;
  for (std::int64_t count = 0; counters >> name >> count;)
    if (name == "oom_kill") return count;
  // This system does not count the processes that it kills for lack of memory, so no later count is larger.
  return std::numeric_limits<std::int64_t>::max();
}

std::string place_of_this_process() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code error;
  return boot + " " + fs::read_symlink("/proc/self/ns/pid", error).string();
}

void describe(EventFile::Header& header) {
  header.process = ::getpid();
  header.process_start = process_state(::getpid()).start;
  header.wall_time = nanoseconds(CLOCK_REALTIME);
  header.time = nanoseconds(CLOCK_MONOTONIC);
  header.oom_kills = count_oom_kills();
  ::gethostname(header.host, sizeof header.host - 1);
  copy_text(header.place, place_of_this_process());
}

// True for kinds of events of which only those of the main thread are kept, since events of other threads
// would overwrite them.
bool is_about_main_thread(EventKind kind) { return kind >= EventKind::step && kind <= EventKind::back; }

// Reports the exit of a process that ends before it has finished its work, while its EventFile lives.
void report_exit(int status, void*) {
  static std::atomic<bool> is_told = false;
  if (!is_told.exchange(true)) report_event(EventKind::exit, status);
}

void await_exit() { ::on_exit(report_exit, nullptr); }

}  // namespace

EventFile::EventFile(const fs::path& folder, int rank, int ranks, std::string_view job) {
  if (folder.empty()) return;
  fs::path unfinished;
  try {
    fs::create_directories(folder);
    const fs::path path = folder / fmt::format("rank-{:04}", rank);
    unfinished = folder / fmt::format(".rank-{:04}.{}", rank, ::getpid());
    if (is_locked(path) || !open(unfinished)) return;
    describe(*header_);
    header_->rank = rank;
    header_->ranks = ranks;
    copy_text(header_->job, job);
    beating_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
    fs::rename(unfinished, path);
  } catch (const std::exception&) {
    std::error_code error;
    fs::remove(unfinished, error);
    beating_ = {};  // stops the thread before header_ becomes null
    header_ = nullptr;
    return;
  }
  await_exit();
  send_events_to(this);
  report_event(EventKind::start);
}

EventFile::~EventFile() {
  send_events_to(nullptr);
  beating_.request_stop();
  if (beating_.joinable()) beating_.join();
  if (memory_ != nullptr) ::munmap(memory_, file_bytes);
}

// Allocates the whole file now. Otherwise, on a full disk, the first access to a page of the mapped file
// would end the process.
bool EventFile::open(const fs::path& path) {
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_.is_there()) return false;
  void* memory = MAP_FAILED;
  if (::posix_fallocate(file_.number(), 0, file_bytes) == 0 &&
      ::flock(file_.number(), LOCK_EX | LOCK_NB) == 0)
    memory = ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    return false;
  }
  memory_ = static_cast<std::byte*>(memory);
  header_ = new (memory_) Header;
  buckets_ = reinterpret_cast<Bucket*>(memory_ + header_bytes);
  slots_ = reinterpret_cast<Slot*>(memory_ + slots_at);
  std::uninitialized_default_construct_n(slots_, slot_count);
  return true;
}

// Stores every second how long the process has existed. The number stands still while the process is stopped; it
// also grows in a process that hangs.
void EventFile::beat(const std::stop_token& stop) {
  constexpr std::int64_t longest_pause = 2;  // a busy machine may pause a running process this long
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
    const std::int64_t seconds = (nanoseconds(CLOCK_MONOTONIC) - header_->time) / 1'000'000'000;
    const std::int64_t pause = seconds - header_->beat.exchange(seconds);
    if (pause > longest_pause) event(EventKind::paused, pause, {});
  }
}

// Writes an event to the next slot. A reader uses a slot only if it finds the same sequence number before and
// after reading it.
void EventFile::event(EventKind kind, std::int64_t number, std::string_view text) noexcept {
  static thread_local const std::int32_t thread = ::gettid();
  if (is_about_main_thread(kind) && std::this_thread::get_id() != main_thread_) return;
  if (kind == EventKind::bucket) {
    if (static_cast<std::size_t>(number) < bucket_count)
      copy_text(buckets_[static_cast<std::size_t>(number)].tensors, text);
    return;
  }
  if (kind == EventKind::ready) header_->ranks = static_cast<std::int32_t>(number);
  // Exit handlers that are registered last run first: this one runs before those of the MPI libraries.
  if (kind == EventKind::step && header_->step.exchange(number, std::memory_order_relaxed) == 0) await_exit();
  if (kind == EventKind::saved) header_->saved.store(number, std::memory_order_relaxed);
  if (kind == EventKind::serves) header_->serves.store(1, std::memory_order_relaxed);
  const std::uint64_t index = header_->next.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[index % slot_count];
  // Marks the slot as unfinished before its fields are written.
  slot.sequence.exchange(0, std::memory_order_acq_rel);
  slot.time = nanoseconds(CLOCK_MONOTONIC);
  if (kind == EventKind::survived) {
    header_->survived.store(slot.time, std::memory_order_relaxed);
    header_->left.store(number, std::memory_order_relaxed);
  }
  slot.number = number;
  slot.kind = static_cast<std::uint32_t>(kind);
  slot.thread = thread;
  copy_text(slot.text, text);
  slot.sequence.store(index + 1, std::memory_order_release);
}

}  // namespace plexaura

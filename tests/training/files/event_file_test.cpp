#include "training/files/event_file.h"

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/support/full_disk.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::event_file_test {

namespace {

struct Event {
  EventKind kind;
  std::int64_t number;
  std::string text;
  bool operator==(const Event&) const = default;
};

// The contents of the file as a reader sees them, events in order.
struct Contents {
  explicit Contents(const std::filesystem::path& path) : bytes(read_text(path)) {
    REQUIRE(bytes.size() == EventFile::file_bytes);
    std::vector<std::pair<std::uint64_t, Event>> found;
    for (std::size_t i = 0; i < EventFile::slot_count; ++i) {
      const auto& slot = *reinterpret_cast<const EventFile::Slot*>(bytes.data() + EventFile::slots_at +
                                                                   i * sizeof(EventFile::Slot));
      if (slot.sequence > 0)
        found.push_back({slot.sequence, {static_cast<EventKind>(slot.kind), slot.number, slot.text}});
    }
    std::ranges::sort(found, {}, [](const auto& entry) { return entry.first; });
    for (auto& entry : found) events.push_back(std::move(entry.second));
  }
  const EventFile::Header& header() const {
    return *reinterpret_cast<const EventFile::Header*>(bytes.data());
  }

  std::string bytes;
  std::vector<Event> events;
};

// Runs `work` in a separate process, and returns its exit status.
template <class Work>
int run_child(Work&& work) {
  std::fflush(nullptr);  // otherwise a child that calls exit() would print it again
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a process that is killed leaves its last events") {
  const TemporaryFolder folder;
  run_child([&] {
    const EventFile file(folder / "events", 3, 5, "job 7");
    report_event(EventKind::step, 41);
    const EventSpan span(EventKind::wait, "bucket 0 of step 41");
    ::raise(SIGKILL);
  });
  const Contents found(folder / "events/rank-0003");
  CHECK(found.events == std::vector<Event>{{EventKind::start, 0, ""},
                                           {EventKind::step, 41, ""},
                                           {EventKind::wait, 0, "bucket 0 of step 41"}});
  CHECK(std::string(found.header().magic, 8) == "PLXEVENT");
  CHECK(found.header().rank == 3);
  CHECK(found.header().ranks == 5);
  CHECK(found.header().step == 41);
  CHECK(std::string(found.header().job) == "job 7");
  CHECK(found.header().next == 3);
}

TEST_CASE("what would be pushed out of the events stands in the header") {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 0, 0, "");
  report_event(EventKind::ready, 4);
  report_event(EventKind::saved, 120);
  report_event(EventKind::survived, 3);
  CHECK(Contents(folder / "rank-0000").header().serves == 0);
  report_event(EventKind::serves);
  const Contents found(folder / "rank-0000");
  CHECK(found.header().serves == 1);
  CHECK(found.header().ranks == 4);
  CHECK(found.header().saved == 120);
  CHECK(found.header().survived >= found.header().time);
  CHECK(found.header().left == 3);
  CHECK(found.header().process == ::getpid());
}

TEST_CASE("the tensors of the first buckets stay") {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 0, 1, "");
  report_event(EventKind::bucket, 31, "fc.weight, fc.bias");
  report_event(EventKind::bucket, 32, "conv1.weight");
  for (int i = 0; i < 1000; ++i) report_event(EventKind::step, i);
  const Contents found(folder / "rank-0000");
  const char* const last = found.bytes.data() + EventFile::slots_at - sizeof(EventFile::Bucket);
  CHECK(std::string(last) == "fc.weight, fc.bias");
  CHECK(found.bytes.find("conv1.weight") == std::string::npos);
}

TEST_CASE("a process that calls exit() before its work is done tells the status") {
  const TemporaryFolder folder;
  run_child([&] {
    const EventFile file(folder.path(), 0, 1, "");
    std::thread([] { std::exit(3); }).join();
  });
  CHECK(Contents(folder / "rank-0000").events.back() == Event{EventKind::exit, 3, ""});
}

TEST_CASE("one that ends in order does not") {
  const TemporaryFolder folder;
  run_child([&] {
    {
      const EventFile file(folder.path(), 0, 1, "");
      report_event(EventKind::end, 0);
    }
    std::exit(0);
  });
  CHECK(Contents(folder / "rank-0000").events.back() == Event{EventKind::end, 0, ""});
}

TEST_CASE("old events make room for new ones, and long texts are cut") {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 0, 1, "");
  const auto all = static_cast<std::int64_t>(EventFile::slot_count);
  for (std::int64_t i = 0; i < 3 * all; ++i) report_event(EventKind::step, i, std::string(1000, 'x'));
  const Contents found(folder / "rank-0000");
  REQUIRE(found.events.size() == EventFile::slot_count);
  CHECK(found.events.front() == Event{EventKind::step, 2 * all, std::string(479, 'x')});
  CHECK(found.events.back().number == 3 * all - 1);
}

TEST_CASE("threads tell events side by side") {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 0, 1, "");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int j = 0; j < 25; ++j) report_event(EventKind::error, i, fmt::format("sum {}", j));
    });
  for (std::thread& thread : threads) thread.join();
  const Contents found(folder / "rank-0000");
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 25; ++j)
      CHECK(std::ranges::count(found.events, Event{EventKind::error, i, fmt::format("sum {}", j)}) == 1);
}

TEST_CASE("what helpers wait for does not push out what the main thread did") {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 0, 1, "");
  report_event(EventKind::phase, 0, "validation");
  std::thread([] {
    for (std::size_t i = 0; i < EventFile::slot_count; ++i) const EventSpan span(EventKind::wait, "a sum");
    report_event(EventKind::lost, 1, "rank 1 has died");
  }).join();
  CHECK(Contents(folder / "rank-0000").events == std::vector<Event>{{EventKind::start, 0, ""},
                                                                    {EventKind::phase, 0, "validation"},
                                                                    {EventKind::lost, 1, "rank 1 has died"}});
}

TEST_CASE("where the file cannot get its name nothing is left") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "rank-0000/taken");
  const EventFile file(folder.path(), 0, 1, "");
  CHECK_FALSE(file.keeps());
  CHECK(folder.files() == 1);
}

TEST_CASE("a new run begins the file anew, and one that is under way keeps it") {
  const TemporaryFolder folder;
  {
    const EventFile first(folder.path(), 0, 1, "first");
    const EventFile second(folder.path(), 0, 1, "second");
    CHECK(first.keeps());
    CHECK_FALSE(second.keeps());
    CHECK(std::string(Contents(folder / "rank-0000").header().job) == "first");
  }
  const EventFile third(folder.path(), 0, 1, "third");
  const Contents found(folder / "rank-0000");
  CHECK(std::string(found.header().job) == "third");
  CHECK(found.events.size() == 1);
}

TEST_CASE("where there is no room nothing is kept, and nothing is left") {
  const TemporaryFolder folder;
  {
    const FullDisk full(1000);
    const EventFile file(folder.path(), 0, 1, "");
    CHECK_FALSE(file.keeps());
    report_event(EventKind::step, 1);
  }
  CHECK(folder.files() == 0);
  const EventFile nowhere("/proc/none", 0, 1, "");
  CHECK_FALSE(nowhere.keeps());
}

TEST_CASE("a process that was stopped says so when it goes on") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const EventFile file(folder.path(), 0, 1, "");
    for (;;) ::pause();
  }
  const auto wait_until = [&](auto&& done) {
    for (int i = 0; i < 3000 && !done(); ++i) ::usleep(10'000);
    CHECK(done());
  };
  const auto path = folder / "rank-0000";
  wait_until([&] { return std::filesystem::exists(path) && Contents(path).header().beat >= 1; });
  ::kill(child, SIGSTOP);
  ::sleep(4);
  ::kill(child, SIGCONT);
  wait_until([&] { return Contents(path).events.back().kind == EventKind::paused; });
  CHECK(Contents(path).events.back().number >= 3);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a process is told from a later one of the same number by when it started, whatever its name is") {
  std::int64_t started = 0;
  std::FILE* const stat = std::fopen("/proc/self/stat", "r");
  REQUIRE(stat != nullptr);
  CHECK(std::fscanf(
            stat,
            "%*d %*s %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %" SCNd64,
            &started) == 1);
  std::fclose(stat);
  const TemporaryFolder folder;
  run_child([&] {
    ::prctl(PR_SET_NAME, "a) 1 (b 2");
    const EventFile file(folder / "events", 0, 1, "");
  });
  // The child is younger, but by less time than these tests take.
  const std::int64_t started_child = Contents(folder / "events" / "rank-0000").header().process_start;
  CHECK(started_child >= started);
  CHECK(started_child < started + 1000 * ::sysconf(_SC_CLK_TCK));
}

}  // namespace plexaura::testing::event_file_test

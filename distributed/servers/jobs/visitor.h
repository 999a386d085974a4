#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "distributed/servers/jobs/line.h"
#include "distributed/servers/jobs/visited_server.h"

namespace plexaura {

// A client of a VisitedServer, with a connection to it. A thread of its own tells the server that this process is alive. Where
// the connection breaks it comes back to the server that the file names then, perhaps another one that goes on from a
// checkpoint. It waits for so many seconds each time, and then throws DeviceError. It says nothing to who does not prove to know
// the key of the file.
class Visitor {
 public:
  // Connects, and hears how the server's samples are; waits for a server to be there. UserError where the file is not
  // that of a server.
  Visitor(std::filesystem::path file, double deadline_seconds);
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  ~Visitor();

  // See VisitedServerOptions.
  const VisitFacts& samples() const { return samples_; }
  // All weights. UserError in the server's words where it differs. `weight_bytes`: of them.
  std::vector<std::byte> join(VisitFacts facts, std::size_t weight_bytes);
  // From 1, in the order in which clients have joined.
  int number() const { return static_cast<int>(number_); }
  // Pushes what was learned in so many steps (none: nothing), and returns what the server has then. UserError where it
  // does not take that in. What is pushed while the connection breaks may be taken in twice.
  std::vector<std::byte> exchange(std::span<const std::byte> push, std::int64_t steps);
  void leave();

 private:
  void connect();
  bool try_to_connect(double until);
  void prove(double until);
  LineLetter come_in(double until);
  LineLetter await(Say wanted, double until);
  void post(LineHead head, std::span<const std::byte> content = {});
  void come_back();
  void beat();
  [[noreturn]] void fail(std::string_view what) const;  // within the deadline
  [[noreturn]] void fail_with(std::string_view what) const;

  std::filesystem::path file_;
  double deadline_;
  std::mutex mutex_;  // of line_, which the thread uses, too
  std::optional<Line> line_;
  VisitFacts samples_;
  VisitFacts facts_;
  std::size_t weight_bytes_ = 0;
  std::string last_failure_;  // to connect: where and why
  std::int64_t number_ = 0;
  std::int64_t version_ = 0;  // of the weights that it got last
  double joined_at_ = 0;      // seconds
  double waited_ = 0;
  std::condition_variable_any woken_;
  std::jthread beats_;  // goes first
};

}  // namespace plexaura

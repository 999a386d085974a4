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

// A client of a VisitedServer, with a connection to it. A separate thread keeps sending to the server, to
// show that this process is alive. If the connection breaks, the client connects to the server that the file
// names then; it may be another server, which continues from a checkpoint. If no bytes move until the
// deadline, a wait ends in a DeviceError. It sends no letter to a server that has not proven the key.
class Visitor {
 public:
  // Waits for a server, connects to it, and gets the facts about its samples. Throws UserError if no server
  // can have written the file, and DeviceError if no server answers within the deadline.
  Visitor(std::filesystem::path file, double deadline_seconds);
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  ~Visitor();

  // Returns VisitedServerOptions::samples of the server.
  const VisitFacts& samples() const { return samples_; }
  // Joins. Returns all weights, which must have `weight_bytes` bytes. Throws UserError, with the server's
  // sentence, if the facts differ.
  std::vector<std::byte> join(VisitFacts facts, std::size_t weight_bytes);
  // Returns the number of this client: from 1, in the order in which clients have joined.
  int number() const { return static_cast<int>(number_); }
  // Pushes what was learned in `steps` steps, or nothing after no steps, and returns the server's weights. Throws UserError if the
  // server refuses the push. If the connection breaks, the push is sent again, and the server may take it in twice.
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
  // fail() and fail_with() throw a DeviceError whose text begins with the file. fail() adds the deadline and the last
  // failure to `what`.
  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void fail_with(std::string_view what) const;

  std::filesystem::path file_;
  double deadline_;
  std::mutex mutex_;  // guards line_, which the thread of beats_ uses too
  std::optional<Line> line_;
  VisitFacts samples_;
  VisitFacts facts_;
  std::size_t weight_bytes_ = 0;
  std::string last_failure_;  // where and why the last attempt to connect failed
  std::int64_t number_ = 0;
  std::int64_t version_ = 0;  // version of the last weights that this client got
  double joined_at_ = 0;      // time when this client joined, in seconds
  double waited_ = 0;
  std::condition_variable_any woken_;
  std::jthread beats_;  // declared last, so that it is destroyed first
};

}  // namespace plexaura

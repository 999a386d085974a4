#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/servers/jobs/visited_server.h"
#include "distributed/servers/jobs/visitor.h"
#include "distributed/servers/ranks/shared_weights.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing {

using Floats = std::vector<float>;

inline std::vector<std::byte> bytes_of_floats(const Floats& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

inline Floats floats_of(std::span<const std::byte> bytes) {
  const auto numbers = elements_of<const float>(bytes);
  return {numbers.begin(), numbers.end()};
}

// Returns a host that wants no reports, and has no checkpoints.
inline VisitedServerHost silent_host(std::function<bool()> is_to_end) {
  return {.is_to_end = std::move(is_to_end),
          .pushed = [](const VisitedServer&) {},
          .keep_before = [](std::int64_t) { return std::string(); },
          .say = [](const std::string&) {},
          .warn = [](const std::string&) {}};
}

// A server in a thread. It has two elements of trainable weights that are 0, or more, a buffer of one
// element, and a frozen 9.
class Served {
 public:
  explicit Served(VisitedServerOptions options, std::int64_t elements = 2)
      : form_(form(elements)), options_(std::move(options)), file_(own_folder_.emplace() / "server") {
    begin(elements);
  }
  Served(std::filesystem::path file, VisitedServerOptions options)
      : form_(form(2)), options_(std::move(options)), file_(std::move(file)) {
    begin(2);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    is_to_end_ = true;
    if (work_.valid()) work_.wait();
  }

  VisitedServer& server() { return *server_; }
  const std::filesystem::path& file() const { return file_; }
  const ServerPlace& place() const { return server_->place(); }
  void start() {
    work_ = std::async(std::launch::async, [this] { return server_->serve(); });
  }
  // Waits for the server. Returns true if its work was complete.
  bool end() { return work_.get(); }

  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  void wait_until_said(const std::string& text) {
    while (said().find(text) == std::string::npos) std::this_thread::yield();
  }
  const std::string& saved() const { return saved_; }

  static LogicalWeights form(std::int64_t elements) {
    using Specs = std::vector<ParameterSpec>;
    return LogicalWeights(Specs{{"weight", {DType::float32, {elements}}, ParameterRole::trainable, {}},
                                {"running", {DType::float32, {1}}, ParameterRole::buffer, {}},
                                {"frozen", {DType::float32, {1}}, ParameterRole::frozen, {}}});
  }
  // Returns the facts in which a client has to agree with the server.
  static VisitFacts facts(const std::string& model = "a", std::int64_t elements = 2) {
    VisitFacts all = form(elements).facts();
    all["model"] = model;
    return all;
  }
  static Floats push(Visitor& visitor, const Floats& numbers, std::int64_t steps = 1) {
    return floats_of(visitor.exchange(bytes_of_floats(numbers), steps));
  }

 private:
  void begin(std::int64_t elements) {
    options_.facts["model"] = "a";
    Floats weights(static_cast<std::size_t>(elements) + 2, 0.0F);
    weights.back() = 9;
    server_.emplace(
        file_, form_, bytes_of_floats(weights), options_,
        VisitedServerHost{.is_to_end = [this] { return is_to_end_.load(); },
                          .pushed = [this](const VisitedServer& server) { saved_ = server.account(); },
                          .keep_before = [this](std::int64_t version) { return version == 0 ? "" : kept_; },
                          .say = [this](const std::string& sentence) { note(sentence); },
                          .warn = [this](const std::string& sentence) { note(sentence); }});
  }

  void note(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    said_ += sentence + "\n";
  }

  std::optional<TemporaryFolder> own_folder_;
  LogicalWeights form_;
  VisitedServerOptions options_;
  std::filesystem::path file_;
  std::atomic<bool> is_to_end_ = false;
  std::mutex mutex_;
  std::string said_;
  std::string saved_;
  std::string kept_ = "checkpoint-7";
  std::optional<VisitedServer> server_;
  std::future<bool> work_;
};

}  // namespace plexaura::testing

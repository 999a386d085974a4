#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace plexaura::testing {

// A server with small weights, and connections to it: strangers, and clients that have the key but follow no
// rule. Bytes determine what they send, so that a fuzzer can choose it. For one thread.
class Storm {
 public:
  // `folder` is for the server's file.
  explicit Storm(const std::filesystem::path& folder);
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;
  ~Storm();

  // Opens a connection that sends what these bytes describe, and lets the server work until it has closed
  // that connection.
  void send(std::span<const std::byte> bytes);
  // Returns true if a client that follows the rules can join, push and get its answer.
  bool serves();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace plexaura::testing

#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace plexaura::testing {

// A server of small weights, and whoever comes to it: strangers, and clients with the key that keep to no rule. What they send is
// made of bytes, so that a fuzzer may choose these. For one thread.
class Storm {
 public:
  // `folder`: for the server's file.
  explicit Storm(const std::filesystem::path& folder);
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;
  ~Storm();

  // Sends what these bytes say, and lets the server work until it has closed that connection.
  void send(std::span<const std::byte> bytes);
  // Whether a client that keeps to the rules joins, pushes and gets its answer.
  bool serves();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace plexaura::testing

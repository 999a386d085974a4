#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace plexaura::far_device {

// Sums over ranks for devices that are simulated: each copies what it brings into a file that all ranks of the host map. Of one
// sum the functions are called in the order in which they stand here, from one thread at a time.
class SharedSums {
 public:
  static std::string make_token();  // the name of the file
  // Throws DeviceError where another rank does not come within the deadline.
  SharedSums(std::string token, int rank, int ranks, double deadline_seconds);
  ~SharedSums();
  SharedSums(const SharedSums&) = delete;
  SharedSums& operator=(const SharedSums&) = delete;

  bool have_read() const;  // the others, what this rank has brought to the last sum
  void bring(const std::byte* data, std::size_t bytes);
  bool have_brought() const;  // the others, to this sum
  // In the order of ranks.
  void add(DType dtype, std::byte* data, std::int64_t count);

  // Nobody is waited for any more, and nothing is added. Any thread.
  void give_up() { given_up_ = true; }
  bool has_given_up() const { return given_up_; }

 private:
  struct Header;
  Header& header(int rank) const;
  std::byte* values(int rank) const;
  bool all_are_at(std::atomic<std::uint64_t> Header::*counter) const;

  std::string token_;
  int rank_;
  int ranks_;
  std::byte* memory_ = nullptr;
  std::uint64_t sums_ = 0;  // that this rank has brought something to
  std::atomic<bool> given_up_ = false;
};

}  // namespace plexaura::far_device

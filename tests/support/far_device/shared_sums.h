#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace plexaura::far_device {

// Sums over ranks for simulated devices. Each rank copies its values into a file that all ranks of the host
// map. For each sum, one thread at a time calls the functions in the order in which they are declared.
class SharedSums {
 public:
  static std::string make_token();  // makes a name for the file
  // Throws DeviceError if another rank does not come within the deadline.
  SharedSums(std::string token, int rank, int ranks, double deadline_seconds);
  ~SharedSums();
  SharedSums(const SharedSums&) = delete;
  SharedSums& operator=(const SharedSums&) = delete;

  bool have_read() const;  // true if the others have read this rank's values of the last sum
  void bring(const std::byte* data, std::size_t bytes);
  bool have_brought() const;  // true if the others have copied their values for this sum
  // Adds in the order of ranks.
  void add(DType dtype, std::byte* data, std::int64_t count);

  // Ends waits for other ranks, and stops adding. May be called by any thread.
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
  std::uint64_t sums_ = 0;  // number of sums to which this rank has contributed
  std::atomic<bool> given_up_ = false;
};

}  // namespace plexaura::far_device

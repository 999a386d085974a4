#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plexaura {

// A piece of memory that other processes of this machine may map, too. It has no name in any folder, so
// nothing stays behind however the processes end. Its pages exist and are mapped from the start, so that
// later accesses can neither fault nor fail. Aligned to 2 MiB, zero at first.
class SharedSegment {
 public:
  // Throws a DeviceError that says why where there is no such memory. Several segments that together are more
  // than the machine has may end processes instead.
  static SharedSegment create(std::size_t bytes);
  // Nothing where the memory of this address cannot be opened from here: another machine, container or user.
  static std::optional<SharedSegment> attach(const std::string& address, std::size_t bytes);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();  // unmaps; the memory lives on while another process has it mapped

  // Where other processes find it, until close_to_others(): called once everyone has attached.
  const std::string& address() const { return address_; }
  void close_to_others() noexcept;
  std::byte* data() const { return base_; }

 private:
  SharedSegment() = default;
  bool map(int file, std::size_t bytes);

  std::string address_;
  int file_ = -1;
  std::byte* base_ = nullptr;
  std::byte* reservation_ = nullptr;
  std::size_t reserved_ = 0;
};

// Memory of this rank that the other ranks of its node see, made by Communicator::allocate_shared; zero at
// first, the base aligned to 2 MiB. Where the ranks could not share (shared() is false) it is private memory,
// to be used in the same way. It may outlive its communicator. What one rank writes, others may read only
// after a call of the communicator in which all took part.
class SharedWindow {
 public:
  // One segment per rank of the node, in the order of ranks; `own` is this rank's.
  SharedWindow(std::vector<SharedSegment> segments, int own, std::size_t bytes);
  static SharedWindow make_private(std::size_t bytes);  // DeviceError for more than the machine has

  std::byte* data() const { return bases_[static_cast<std::size_t>(own_)]; }
  std::size_t bytes() const { return bytes_; }
  bool shared() const { return private_ == nullptr; }
  // This rank's place among bases(): its rank in the node, or 0 when private.
  int own() const { return own_; }
  // The window of each rank of the node, in the order of ranks; only one's own when private.
  const std::vector<std::byte*>& bases() const { return bases_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  SharedWindow() = default;

  std::vector<SharedSegment> segments_;
  std::unique_ptr<std::byte, Free> private_;
  std::vector<std::byte*> bases_;
  int own_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace plexaura

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plexaura {

// Memory that other processes of this machine can map too. It has no name in the file system, so it
// disappears however the processes end. Its pages are allocated and mapped from the start, so that later
// accesses can neither fault nor fail. It is aligned to 2 MiB and zeroed.
class SharedSegment {
 public:
  // Throws a DeviceError with the reason if the memory cannot be allocated. If several segments together
  // exceed the machine's memory, the system may kill processes instead.
  static SharedSegment create(std::size_t bytes);
  // Maps the memory at this address. Returns nothing if this process cannot open it, because it belongs to
  // another machine, container or user.
  static std::optional<SharedSegment> attach(const std::string& address, std::size_t bytes);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();  // unmaps the memory, which exists as long as another process has it mapped

  // Returns the address at which other processes open the memory. Valid until close_to_others(), which is
  // called after all processes have attached.
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

// Memory of this rank that the other ranks of its node can access, made by Communicator::allocate_shared. It
// is zeroed, and its base is aligned to 2 MiB. If the ranks could not share (shared() is false), it is
// private memory and is used in the same way. It may outlive its communicator. Other ranks may read what one
// rank has written only after a call of the communicator in which all took part.
class SharedWindow {
 public:
  // `segments` has one element for each rank of the node, in the order of ranks. `own` is the index of this
  // rank's segment.
  SharedWindow(std::vector<SharedSegment> segments, int own, std::size_t bytes);
  static SharedWindow make_private(std::size_t bytes);  // throws DeviceError if the machine has less memory

  std::byte* data() const { return bases_[static_cast<std::size_t>(own_)]; }
  std::size_t bytes() const { return bytes_; }
  bool shared() const { return private_ == nullptr; }
  // Returns this rank's index in bases(): its number in the node, or 0 if the memory is private.
  int own() const { return own_; }
  // Returns the windows of all ranks of the node, in the order of ranks. If the memory is private, returns
  // only this rank's window.
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

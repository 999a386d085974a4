#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cuda/kernels/block.h"
#include "backends/cuda/kernels/global_races.h"

// The implementation of block.h for a plain compiler: a loop runs the threads one after another. Behaviour
// that is undefined on a GPU throws InternalError.

namespace plexaura::cuda {

// Returns the host address of bytes in the simulated device's memory. Throws if the memory is not allocated.
// Each simulation of the device defines this function.
std::byte* place_of(const std::byte* address, std::size_t bytes);
std::uint64_t times_freed();  // results of place_of() are valid until this changes

[[noreturn]] void throw_out_of_bounds(std::int64_t index, std::int64_t count);
[[noreturn]] void throw_unwritten(std::int64_t index);
[[noreturn]] void throw_race(std::int64_t index, int thread, int other);

inline const std::byte* use_atomically(const std::uint32_t& word) {
  const auto* place = reinterpret_cast<const std::byte*>(&word);
  if (global_races != nullptr) global_races->use_atomically(place, sizeof(word));
  return place;
}

// Raises the flag. Returns true if it was not raised before.
inline bool claim(std::uint32_t& flag) {
  use_atomically(flag);
  return std::exchange(flag, 1U) == 0;
}

inline bool arrive(std::uint32_t& counter, std::uint32_t count) {
  const std::byte* place = use_atomically(counter);
  const bool last = ++counter == count;
  if (last) counter = 0;
  if (global_races != nullptr) global_races->arrive(place, last);
  return last;
}

inline void publish(std::uint32_t& flag) { std::atomic_ref(flag).store(1U); }

template <class T>
T read_global(const T* place) {
  if (global_races != nullptr) global_races->read(reinterpret_cast<const std::byte*>(place), sizeof(T));
  return *place;
}

// A reference to an element that a kernel may write.
template <class T>
class GlobalElement {
 public:
  explicit GlobalElement(T* place) : place_(place) {}
  operator T() const { return read_global(place_); }
  GlobalElement& operator=(T value) {
    if (global_races != nullptr) global_races->write(reinterpret_cast<std::byte*>(place_), sizeof(T));
    *place_ = value;
    return *this;
  }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): it is read before it is written
  GlobalElement& operator=(const GlobalElement& other) {
    *this = static_cast<T>(other);
    return *this;
  }

 private:
  T* place_;
};

// The number of bytes in copied Globals. Null: they are not counted.
inline thread_local std::size_t* bytes_copied = nullptr;

// The most elements that several() and set_several() of this thread have used at once.
inline thread_local int most_at_once = 0;

template <class T>
class Global {
 public:
  using Bytes = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  Global() : Global(nullptr, 0) {}
  Global(Bytes* address, std::int64_t count) : address_(address), count_(count) {}
  Global(const Global& other)
      : address_(other.address_), count_(other.count_), place_(other.place_), freed_(other.freed_) {
    if (bytes_copied != nullptr && *this) *bytes_copied += static_cast<std::size_t>(count_) * sizeof(T);
  }
  Global& operator=(const Global&) = default;
  ~Global() = default;

  std::int64_t count() const { return count_; }
  explicit operator bool() const { return address_ != nullptr; }

  auto operator[](std::int64_t i) const { return as<T>(i); }

  template <class Other>
  auto as(std::int64_t i) const {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Other));
    const std::int64_t count = count_ * static_cast<std::int64_t>(sizeof(T)) / size;
    if (i < 0 || i >= count) throw_out_of_bounds(i, count);
    if constexpr (std::is_const_v<T>)
      return read_global(reinterpret_cast<const Other*>(place()) + i);
    else
      return GlobalElement<Other>(reinterpret_cast<Other*>(place()) + i);
  }

  template <int count, class Other = std::remove_const_t<T>>
  auto several(std::int64_t i) const {
    Several<Other, count> result;
    require_aligned<Other>(i, alignof(decltype(result)));
    most_at_once = std::max(most_at_once, count);
    for (int k = 0; k < count; ++k) result[k] = as<Other>(i + k);
    return result;
  }
  template <class Other, int count>
  void set_several(std::int64_t i, const Several<Other, count>& values) const {
    require_aligned<Other>(i, alignof(Several<Other, count>));
    most_at_once = std::max(most_at_once, count);
    for (int k = 0; k < count; ++k) as<Other>(i + k) = values[k];
  }

  T& shared(std::int64_t i) const {
    if (i < 0 || i >= count_) throw_out_of_bounds(i, count_);
    return place()[i];
  }

 private:
  T* place() const {
    if (place_ == nullptr || freed_ != times_freed()) {
      freed_ = times_freed();
      place_ = reinterpret_cast<T*>(place_of(address_, static_cast<std::size_t>(count_) * sizeof(T)));
    }
    return place_;
  }

  template <class Other>
  void require_aligned(std::int64_t i, std::size_t access) const {
    const auto place =
        reinterpret_cast<std::uintptr_t>(address_) + static_cast<std::size_t>(i) * sizeof(Other);
    if (place % access != 0)
      throw InternalError("a kernel uses " + std::to_string(access) + " bytes at once, from element " +
                          std::to_string(i) + " on, whose address is not a multiple of that");
  }

  Bytes* address_;
  std::int64_t count_;
  mutable T* place_ = nullptr;
  mutable std::uint64_t freed_ = 0;
};

// Returns the bytes of all values in the device's memory that are members of the kernel, or of its members.
template <class Kernel>
std::size_t bytes_given_to(const Kernel& kernel) {
  std::size_t bytes = 0;
  bytes_copied = &bytes;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): copying is what counts
  [[maybe_unused]] const Kernel copy(kernel);
  bytes_copied = nullptr;
  return bytes;
}

class Block {
 public:
  Block(std::int64_t index, std::int64_t blocks) : index_(index), blocks_(blocks) {
    if (global_races != nullptr) global_races->begin_block(index);
  }

  std::int64_t index() const { return index_; }
  std::int64_t blocks() const { return blocks_; }

  template <class F>
  void each_thread(const F& f) {
    for (int thread = 0; thread < threads; ++thread) {
      go_to(thread);
      f(thread);
    }
    go_to(every_thread);
    ++phase_;
    if (global_races != nullptr) global_races->end_phase();
  }

  template <class F>
  void each_item(std::int64_t count, const F& f) {
    for (int thread = 0; thread < threads; ++thread) {
      go_to(thread);
      for (std::int64_t i = index_ * threads + thread; i < count; i += blocks_ * threads) f(i);
    }
    go_to(every_thread);
  }

  int thread() const { return thread_; }
  int phase() const { return phase_; }

 private:
  void go_to(int thread) {
    thread_ = thread;
    if (global_races != nullptr) global_races->go_to(thread);
  }

  std::int64_t index_;
  std::int64_t blocks_;
  int thread_ = every_thread;
  int phase_ = 0;
};

// An array shared by the threads of a block. Detects reads of elements that no thread has written, and
// elements that one thread writes and another one uses in the same phase.
template <class T, int size>
class SharedArray {
 public:
  explicit SharedArray(const Block& block) : block_(block) {}

  class Element {
   public:
    Element(SharedArray& array, int index) : array_(array), index_(index) {}
    operator T() const { return array_.read(index_); }
    Element& operator=(T value) {
      array_.write(index_, value);
      return *this;
    }
    Element& operator=(const Element& other) {
      *this = static_cast<T>(other);
      return *this;
    }
    Element& operator+=(T value) { return *this = array_.read(index_) + value; }

   private:
    SharedArray& array_;
    int index_;
  };

  Element operator[](int index) {
    if (index < 0 || index >= size) throw_out_of_bounds(index, size);
    return {*this, index};
  }

 private:
  struct Use {
    int phase = -1;
    int thread = -1;
  };

  bool conflicts(const Use& use) const {
    return use.phase == block_.phase() && use.thread != block_.thread();
  }

  T read(int index) {
    const auto i = static_cast<std::size_t>(index);
    if (written_[i].thread < 0) throw_unwritten(index);
    if (conflicts(written_[i])) throw_race(index, block_.thread(), written_[i].thread);
    read_[i] = {block_.phase(),
                read_[i].phase == block_.phase() && conflicts(read_[i]) ? -1 : block_.thread()};
    return values_[i];
  }

  void write(int index, T value) {
    if (block_.thread() == every_thread) throw_race(index, every_thread, every_thread);
    const auto i = static_cast<std::size_t>(index);
    for (const Use& use : {written_[i], read_[i]})
      if (conflicts(use)) throw_race(index, block_.thread(), use.thread);
    written_[i] = {block_.phase(), block_.thread()};
    values_[i] = value;
  }

  const Block& block_;
  std::array<T, size> values_{};
  std::array<Use, size> written_{};
  std::array<Use, size> read_{};  // thread -1: several threads
};

}  // namespace plexaura::cuda

#define PLEXAURA_SHARED(block, T, name, size) SharedArray<T, size> name(block)

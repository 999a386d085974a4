#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/kernels/block.h"

// The implementation of block.h for a compiler of device code.

namespace plexaura::cuda {

// The type of an access to so many bytes.
template <std::size_t bytes>
using AccessOf = std::conditional_t<
    bytes == 16, uint4,
    std::conditional_t<bytes == 8, uint2,
                       std::conditional_t<bytes == 4, std::uint32_t,
                                          std::conditional_t<bytes == 2, std::uint16_t, std::uint8_t>>>>;

// Elements in the device's memory. The address is null if no one uses them.
template <class T>
class Global {
 public:
  using Bytes = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  Global() : Global(nullptr, 0) {}
  Global(Bytes* address, std::int64_t count) : data_(reinterpret_cast<T*>(address)), count_(count) {}

  PLEXAURA_HD std::int64_t count() const { return count_; }
  PLEXAURA_HD explicit operator bool() const { return data_ != nullptr; }
  PLEXAURA_DEVICE T& operator[](std::int64_t i) const { return data_[i]; }
  template <class Other>
  PLEXAURA_DEVICE auto& as(std::int64_t i) const {
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const Other, Other>*>(data_)[i];
  }
  PLEXAURA_DEVICE T& shared(std::int64_t i) const { return data_[i]; }

  template <int count, class Other = std::remove_const_t<T>>
  PLEXAURA_DEVICE auto several(std::int64_t i) const {
    using Result = Several<Other, count>;
    Result result;
    using Access = AccessOf<alignof(Result)>;
    for (std::size_t k = 0; k < sizeof(Result) / sizeof(Access); ++k)
      reinterpret_cast<Access*>(&result)[k] = reinterpret_cast<const Access*>(&as<Other>(i))[k];
    return result;
  }
  // A plain assignment may become a store for each word. The stores do not pass through the L1 cache either
  // way.
  template <class Other, int count>
  PLEXAURA_DEVICE void set_several(std::int64_t i, const Several<Other, count>& values) const {
    if constexpr (count == 1) {
      as<Other>(i) = values[0];
    } else {
      using Access = AccessOf<alignof(Several<Other, count>)>;
      for (std::size_t k = 0; k < sizeof(values) / sizeof(Access); ++k)
        __stcg(reinterpret_cast<Access*>(&as<Other>(i)) + k, reinterpret_cast<const Access*>(&values)[k]);
    }
  }

 private:
  T* data_;
  std::int64_t count_;
};

// Raises the flag. Returns true if it was not raised before.
PLEXAURA_DEVICE inline bool claim(std::uint32_t& flag) { return atomicCAS(&flag, 0U, 1U) == 0; }

PLEXAURA_DEVICE inline bool arrive(std::uint32_t& counter, std::uint32_t count) {
  __threadfence();  // makes earlier writes visible to threads that see the counter
  const bool last = atomicAdd(&counter, 1U) == count - 1;
  if (last) counter = 0;
  __threadfence();
  return last;
}

PLEXAURA_DEVICE inline void publish(std::uint32_t& flag) {
  __threadfence_system();
  *static_cast<volatile std::uint32_t*>(&flag) = 1U;
}

class Block {
 public:
  PLEXAURA_DEVICE std::int64_t index() const { return blockIdx.x; }
  PLEXAURA_DEVICE std::int64_t blocks() const { return gridDim.x; }

  template <class F>
  PLEXAURA_DEVICE void each_thread(const F& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  template <class F>
  PLEXAURA_DEVICE void each_item(std::int64_t count, const F& f) {
    for (std::int64_t i = index() * threads + threadIdx.x; i < count; i += blocks() * threads) f(i);
  }
};

}  // namespace plexaura::cuda

#define PLEXAURA_SHARED(block, T, name, size) __shared__ T name[size]

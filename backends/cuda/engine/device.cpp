#include "backends/cuda/engine/device.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <new>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/wrong_index.h"
#include "core/base/error.h"

namespace plexaura::cuda {

Zeros::Zeros(std::size_t bytes, runtime::Stream* stream)
    : source_(bytes), address_(runtime::allocate_device(bytes)) {
  std::fill_n(source_.address(), bytes, std::byte{0});
  runtime::copy(stream, address_, source_.address(), bytes);
}

namespace {

constexpr std::size_t bytes_of_arrivals = most_arrivals * sizeof(std::uint32_t);

}  // namespace

Device::Device(int index)
    : info(runtime::open_device(index)),
      wrong_index(sizeof(WrongIndex)),
      arrivals_(most_branches * bytes_of_arrivals, compute.get()),
      branches_{
          {{compute.get(), arrivals_.address()}, {beside.get(), arrivals_.address() + bytes_of_arrivals}}} {
  new (wrong_index.address()) WrongIndex{};
}

void Device::throw_wrong_index() {
  auto& told = *reinterpret_cast<WrongIndex*>(wrong_index.address());
  const std::lock_guard lock(mutex_);
  if (std::atomic_ref(told.found).load() == 0) return;
  const WrongIndex wrong = told;
  std::atomic_ref(told.found).store(0);
  std::atomic_ref(told.claimed).store(0);
  if (wrong.extent == 0)
    throw DeviceError(fmt::format(
        "{}: element {} of the indices is {}, but the axis is empty; give it elements or no indices",
        *wrong.launch, wrong.element, wrong.index));
  throw DeviceError(fmt::format(
      "{}: element {} of the indices is {}; an index must be from 0 to {}, one less than the extent "
      "of the axis: check the indices before they are fed",
      *wrong.launch, wrong.element, wrong.index, wrong.extent - 1));
}

}  // namespace plexaura::cuda

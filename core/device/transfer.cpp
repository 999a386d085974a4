#include "core/device/transfer.h"

#include <cstring>

namespace plexaura {

void wait_for(Backend& backend) {
  if (backend.info().host_memory) return;
  const auto done = backend.make_event();
  done->record(Stream::compute);
  done->wait();
}

void settle(Backend& backend) noexcept {
  if (backend.info().host_memory) return;
  for (const Stream stream : {Stream::copy, Stream::compute}) try {
      const auto done = backend.make_event();
      done->record(stream);
      done->wait();
    } catch (const std::exception&) {
      // The failure of work that nobody waited for has nobody to tell.
    }
}

void copy_to_host(Backend& backend, std::byte* dst, Address src, std::size_t bytes) {
  if (bytes == 0) return;
  if (backend.info().host_memory) {
    std::memcpy(dst, src, bytes);
    return;
  }
  const auto staging = backend.allocate(bytes, MemoryUse::staging);
  backend.copy(Stream::compute, staging->address(), src, bytes);
  wait_for(backend);
  std::memcpy(dst, staging->address(), bytes);
}

void copy_to_device(Backend& backend, Address dst, const std::byte* src, std::size_t bytes) {
  if (bytes == 0) return;
  if (backend.info().host_memory) {
    std::memcpy(dst, src, bytes);
    return;
  }
  const auto staging = backend.allocate(bytes, MemoryUse::staging);
  std::memcpy(staging->address(), src, bytes);
  backend.copy(Stream::compute, dst, staging->address(), bytes);
  wait_for(backend);
}

}  // namespace plexaura

#include "core/device/transfer.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace plexaura {

StagedCopy::StagedCopy(Backend& backend, std::size_t most_bytes)
    : backend_(backend),
      staging_(backend.allocate(most_bytes, MemoryUse::staging)),
      done_(backend.make_event()) {}

void StagedCopy::to_host(Address src, std::size_t bytes) {
  backend_.copy(Stream::compute, host(), src, bytes);
  wait();
}

void StagedCopy::to_device(Address dst, std::size_t bytes) {
  backend_.copy(Stream::compute, dst, host(), bytes);
  wait();
}

void StagedCopy::wait() {
  done_->record(Stream::compute);
  done_->wait();
}

void wait_for(Backend& backend) {
  if (backend.info().host_memory) return;
  const auto done = backend.make_event();
  done->record(Stream::compute);
  done->wait();
}

void drain(Backend& backend) noexcept {
  if (backend.info().host_memory) return;
  for (const Stream stream : {Stream::copy, Stream::compute}) try {
      const auto done = backend.make_event();
      done->record(stream);
      done->wait();
    } catch (const std::exception&) {
      // The error is ignored: no caller waited for the work that failed.
    }
}

void copy_to_host(Backend& backend, std::byte* dst, Address src, std::size_t bytes) {
  if (bytes == 0) return;
  if (backend.info().host_memory) {
    std::memcpy(dst, src, bytes);
    return;
  }
  StagedCopy staging(backend, bytes);
  staging.to_host(src, bytes);
  std::memcpy(dst, staging.host(), bytes);
}

void copy_to_device(Backend& backend, Address dst, const std::byte* src, std::size_t bytes) {
  if (bytes == 0) return;
  if (backend.info().host_memory) {
    std::memcpy(dst, src, bytes);
    return;
  }
  StagedCopy staging(backend, bytes);
  std::memcpy(staging.host(), src, bytes);
  staging.to_device(dst, bytes);
}

void write_zeros(Backend& backend, Address dst, std::size_t bytes) {
  if (backend.info().host_memory) {
    std::fill_n(dst, bytes, std::byte{0});
    return;
  }
  constexpr std::size_t from_host = 1 << 16;
  const std::vector<std::byte> zeros(std::min(bytes, from_host));
  copy_to_device(backend, dst, zeros.data(), zeros.size());
  for (std::size_t done = zeros.size(); done < bytes; done += std::min(done, bytes - done))
    backend.copy(Stream::compute, dst + done, dst, std::min(done, bytes - done));
  wait_for(backend);
}

Tensor read_value(Backend& backend, Address src, const TensorType& type, const Layout& layout) {
  std::vector<std::byte> physical(static_cast<std::size_t>(layout.bytes(type)));
  copy_to_host(backend, physical.data(), src, physical.size());
  Tensor value(type);
  reorder(physical.data(), layout, value.data(), Layout::row_major(type.shape.rank()), type);
  return value;
}

void write_value(Backend& backend, Address dst, const Layout& layout, const Tensor& value) {
  const TensorType& type = value.type();
  std::vector<std::byte> physical(static_cast<std::size_t>(layout.bytes(type)));
  reorder(value.data(), Layout::row_major(type.shape.rank()), physical.data(), layout, type);
  copy_to_device(backend, dst, physical.data(), physical.size());
}

}  // namespace plexaura

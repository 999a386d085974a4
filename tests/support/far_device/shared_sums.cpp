#include "tests/support/far_device/shared_sums.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/tensor/dispatch.h"

namespace plexaura::far_device {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 26;  // of one sum; the file is sparse
constexpr std::size_t header_bytes = 4096;
constexpr std::size_t bytes_of_rank = header_bytes + most_bytes;
constexpr std::chrono::microseconds between_looks{100};

[[noreturn]] void fail(const char* call) {
  throw DeviceError(fmt::format("the sums of simulated devices: {} failed: {}", call, std::strerror(errno)));
}

}  // namespace

struct SharedSums::Header {
  std::atomic<std::uint64_t> joined;
  std::atomic<std::uint64_t> brought;
  std::atomic<std::uint64_t> read;
};

std::string SharedSums::make_token() {
  std::string name = "/dev/shm/plexaura-sums-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) fail("mkstemp");
  close(file);
  return name;
}

SharedSums::SharedSums(std::string token, int rank, int ranks, double deadline_seconds)
    : token_(std::move(token)), rank_(rank), ranks_(ranks) {
  const int file = open(token_.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail("open");
  const std::size_t bytes = bytes_of_rank * static_cast<std::size_t>(ranks);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("ftruncate");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) fail("mmap");
  memory_ = static_cast<std::byte*>(memory);
  header(rank_).joined = 1;
  for (const double begin = seconds_now(); !all_are_at(&Header::joined);) {
    if (seconds_now() - begin > deadline_seconds) {
      munmap(memory_, bytes);
      unlink(token_.c_str());
      throw DeviceError(
          fmt::format("not all of {} simulated devices joined within {:.3g} s", ranks_, deadline_seconds));
    }
    std::this_thread::sleep_for(between_looks);
  }
  unlink(token_.c_str());
}

SharedSums::~SharedSums() { munmap(memory_, bytes_of_rank * static_cast<std::size_t>(ranks_)); }

SharedSums::Header& SharedSums::header(int rank) const {
  return *reinterpret_cast<Header*>(memory_ + bytes_of_rank * static_cast<std::size_t>(rank));
}

std::byte* SharedSums::values(int rank) const {
  return memory_ + bytes_of_rank * static_cast<std::size_t>(rank) + header_bytes;
}

bool SharedSums::all_are_at(std::atomic<std::uint64_t> Header::*counter) const {
  const std::uint64_t wanted = counter == &Header::joined ? 1 : sums_;
  for (int rank = 0; rank < ranks_; ++rank)
    if ((header(rank).*counter).load() < wanted) return false;
  return true;
}

bool SharedSums::have_read() const { return given_up_ || all_are_at(&Header::read); }

void SharedSums::bring(const std::byte* data, std::size_t bytes) {
  if (bytes > most_bytes)
    throw DeviceError(fmt::format("simulated devices sum {} bytes at most, not {}", most_bytes, bytes));
  if (given_up_) return;
  std::memcpy(values(rank_), data, bytes);
  header(rank_).brought = ++sums_;
}

bool SharedSums::have_brought() const { return given_up_ || all_are_at(&Header::brought); }

void SharedSums::add(DType dtype, std::byte* data, std::int64_t count) {
  if (given_up_) return;
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    auto* const sums = reinterpret_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) {
      T sum = reinterpret_cast<const T*>(values(0))[i];
      for (int rank = 1; rank < ranks_; ++rank)
        sum = static_cast<T>(sum + reinterpret_cast<const T*>(values(rank))[i]);
      sums[i] = sum;
    }
  });
  header(rank_).read = sums_;
}

}  // namespace plexaura::far_device

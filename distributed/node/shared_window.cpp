#include "distributed/node/shared_window.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <random>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine_memory.h"

namespace plexaura {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// Returns the kernel's name of an open file. For our memory it is "/memfd:" and the memory's name.
std::string target_of(const std::string& link) {
  std::array<char, 256> target{};
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  return {target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

// Returns a name that no other memory has. A process id is not unique, because other containers have the same
// ids.
std::string fresh_name() {
  std::random_device random;
  return fmt::format("plexaura-{:08x}{:08x}", random(), random());
}

[[noreturn]] void throw_reason(const char* call, int error) {
  throw DeviceError(fmt::format("{}: {}", call, std::generic_category().message(error)));
}

std::size_t at_least_a_page(std::size_t bytes) { return bytes == 0 ? 4096 : bytes; }

// Throws if the machine has less memory, because the system would kill processes that use more.
void require_room(std::size_t bytes) {
  const std::size_t memory = machine_memory();
  if (bytes > memory)
    throw DeviceError(
        fmt::format("a rank was asked for {:.1f} MB of memory and this machine has {:.1f} MB: make the model "
                    "smaller",
                    static_cast<double>(bytes) / 1e6, static_cast<double>(memory) / 1e6));
}

std::byte* align(std::byte* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return address + (huge_page - bits % huge_page) % huge_page;
}

}  // namespace

SharedSegment SharedSegment::create(std::size_t bytes) {
  require_room(bytes);
  SharedSegment segment;
  const std::string name = fresh_name();
  segment.file_ = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (segment.file_ < 0) throw_reason("memfd_create", errno);
  // Allocates the pages now, so that a lack of memory is an error here and not a SIGBUS later.
  int error = 0;
  do {
    error = posix_fallocate(segment.file_, 0, static_cast<off_t>(at_least_a_page(bytes)));
  } while (error == EINTR);
  if (error != 0) throw_reason("posix_fallocate", error);
  if (!segment.map(segment.file_, at_least_a_page(bytes))) throw_reason("mmap", errno);
  segment.address_ = fmt::format("/proc/{}/fd/{} {}", getpid(), segment.file_, name);
  return segment;
}

std::optional<SharedSegment> SharedSegment::attach(const std::string& address, std::size_t bytes) {
  const std::size_t space = address.find(' ');
  const int file = open(address.substr(0, space).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  SharedSegment segment;
  const std::string wanted = fmt::format("/memfd:{} (deleted)", address.substr(space + 1));
  const bool found = target_of(fmt::format("/proc/self/fd/{}", file)) == wanted;
  const bool mapped = found && segment.map(file, at_least_a_page(bytes));
  close(file);
  if (!mapped) return std::nullopt;
  return segment;
}

bool SharedSegment::map(int file, std::size_t bytes) {
  // Reserves more addresses than needed, so that the file can be mapped at an aligned one.
  void* place = mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  reservation_ = static_cast<std::byte*>(place);
  reserved_ = bytes + huge_page;
  void* mapped = mmap(align(reservation_), bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
  if (mapped == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(mapped);
  return true;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(file_, other.file_);
  std::swap(base_, other.base_);
  std::swap(reservation_, other.reservation_);
  std::swap(reserved_, other.reserved_);
  return *this;
}

SharedSegment::~SharedSegment() {
  close_to_others();
  if (reservation_ != nullptr) munmap(reservation_, reserved_);
}

void SharedSegment::close_to_others() noexcept {
  if (file_ >= 0) close(std::exchange(file_, -1));
}

SharedWindow::SharedWindow(std::vector<SharedSegment> segments, int own, std::size_t bytes)
    : segments_(std::move(segments)), own_(own), bytes_(bytes) {
  for (const SharedSegment& segment : segments_) bases_.push_back(segment.data());
}

SharedWindow SharedWindow::make_private(std::size_t bytes) {
  require_room(bytes);
  const std::size_t rounded = (at_least_a_page(bytes) + huge_page - 1) / huge_page * huge_page;
  SharedWindow window;
  window.private_.reset(static_cast<std::byte*>(::operator new (rounded, std::align_val_t{huge_page})));
  std::memset(window.private_.get(), 0, rounded);
  window.bases_.push_back(window.private_.get());
  window.bytes_ = bytes;
  return window;
}

void SharedWindow::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete (memory, std::align_val_t{huge_page});
}

}  // namespace plexaura

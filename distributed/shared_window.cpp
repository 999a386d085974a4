#include "distributed/shared_window.h"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace plexaura {
namespace {

constexpr std::size_t kAlignment = std::size_t{2} << 20;

std::string fresh_name() {
  static std::atomic<unsigned> counter{0};
  std::random_device random;
  return fmt::format("/plexaura-{}-{}-{:08x}", getpid(), counter++, random());
}

std::size_t at_least_a_page(std::size_t bytes) { return bytes == 0 ? 4096 : bytes; }

std::byte* align(std::byte* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return address + (kAlignment - bits % kAlignment) % kAlignment;
}

}  // namespace

std::optional<SharedSegment> SharedSegment::create(std::size_t bytes) {
  SharedSegment segment;
  segment.name_ = fresh_name();
  const int file = shm_open(segment.name_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0) return std::nullopt;
  segment.named_ = true;
  // Asking for the pages now is what turns "no room" into an answer; later it would be a SIGBUS.
  const bool has_room = posix_fallocate(file, 0, static_cast<off_t>(at_least_a_page(bytes))) == 0;
  const bool mapped = has_room && segment.map(file, at_least_a_page(bytes));
  close(file);
  if (!mapped) return std::nullopt;
  return segment;
}

std::optional<SharedSegment> SharedSegment::attach(const std::string& name, std::size_t bytes) {
  const int file = shm_open(name.c_str(), O_RDWR, 0600);
  if (file < 0) return std::nullopt;
  SharedSegment segment;
  segment.name_ = name;
  const bool mapped = segment.map(file, at_least_a_page(bytes));
  close(file);
  if (!mapped) return std::nullopt;
  return segment;
}

bool SharedSegment::map(int file, std::size_t bytes) {
  // A larger reservation holds an aligned place; the file is mapped over it.
  void* place = mmap(nullptr, bytes + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  reservation_ = static_cast<std::byte*>(place);
  reserved_ = bytes + kAlignment;
  void* mapped = mmap(align(reservation_), bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
  if (mapped == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(mapped);
  return true;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : name_(std::move(other.name_)),
      named_(std::exchange(other.named_, false)),
      base_(std::exchange(other.base_, nullptr)),
      reservation_(std::exchange(other.reservation_, nullptr)),
      reserved_(std::exchange(other.reserved_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(named_, other.named_);
  std::swap(base_, other.base_);
  std::swap(reservation_, other.reservation_);
  std::swap(reserved_, other.reserved_);
  return *this;
}

SharedSegment::~SharedSegment() {
  forget_name();
  if (reservation_ != nullptr) munmap(reservation_, reserved_);
}

void SharedSegment::forget_name() noexcept {
  if (std::exchange(named_, false)) shm_unlink(name_.c_str());
}

SharedWindow::SharedWindow(std::vector<SharedSegment> segments, int own, std::size_t bytes)
    : segments_(std::move(segments)), own_(own), bytes_(bytes) {
  for (const SharedSegment& segment : segments_) bases_.push_back(segment.data());
}

SharedWindow SharedWindow::make_private(std::size_t bytes) {
  const std::size_t rounded = (at_least_a_page(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  SharedWindow window;
  window.private_.reset(static_cast<std::byte*>(::operator new (rounded, std::align_val_t{kAlignment})));
  std::memset(window.private_.get(), 0, rounded);
  window.bases_.push_back(window.private_.get());
  window.bytes_ = bytes;
  return window;
}

void SharedWindow::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

}  // namespace plexaura

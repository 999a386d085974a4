#include "core/base/profile.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) >= 0x20) result += letter;
  }
  return result + "\"";
}

}  // namespace

double Profile::now() const {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
}

void Profile::add(std::string name, std::string category, double start, double duration, std::string detail) {
  const std::size_t thread = std::hash<std::thread::id>{}(std::this_thread::get_id()) % 100000;
  const std::lock_guard lock(mutex_);
  events_.push_back({std::move(name), std::move(category), std::move(detail), start, duration, thread});
}

std::string Profile::events(int rank) const {
  const std::lock_guard lock(mutex_);
  std::string text =
      fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"rank {}"}}}})", rank, rank);
  if (missing_ > 0)
    text += fmt::format(
        ",\n"
        R"({{"ph":"M","pid":{},"name":"process_labels","args":{{"labels":"events left out for lack of memory: {}"}}}})",
        rank, missing_.load());
  for (const Event& event : events_)
    text += fmt::format(
        ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":{},\"cat\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"detail\":{}}}}}",
        rank, event.thread, quoted(event.name), quoted(event.category), event.start + later_, event.duration,
        quoted(event.detail));
  return text;
}

TraceFile::TraceFile(std::string path) : path_(std::move(path)), file_(path_) {
  if (!file_)
    throw UserError(
        fmt::format("cannot create '{}': {}; name a file in a folder that exists and can be written", path_,
                    std::strerror(errno)));
  file_ << "{\"traceEvents\":[\n";
}

void TraceFile::begin_rank() {
  if (std::exchange(has_ranks_, true)) write(",\n");
}

void TraceFile::write(std::string_view piece) {
  file_ << piece << std::flush;
  if (!file_ && error_ == 0) error_ = errno;
}

void TraceFile::finish() {
  write("\n]}\n");
  if (!file_)
    throw UserError(
        fmt::format("cannot write '{}': {}; free space or name another place", path_, std::strerror(error_)));
}

ProfileSpan::ProfileSpan(Profile* profile, std::string_view name, std::string_view category,
                         std::optional<std::size_t> number, std::optional<std::size_t> bytes)
    : profile_(profile),
      name_(name),
      category_(category),
      number_(number),
      bytes_(bytes),
      start_(profile != nullptr ? profile->now() : 0) {}

ProfileSpan::~ProfileSpan() {
  if (profile_ == nullptr) return;
  try {
    profile_->add(std::string(name_), std::string(category_), start_, profile_->now() - start_, detail());
  } catch (const std::exception&) {
    profile_->miss();
  }
}

std::string ProfileSpan::detail() const {
  if (!number_) return {};
  return bytes_ ? fmt::format("{}, {} bytes", *number_, *bytes_) : std::to_string(*number_);
}

}  // namespace plexaura

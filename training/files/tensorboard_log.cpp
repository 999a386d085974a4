#include "training/files/tensorboard_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "training/files/wire_writer.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

// The fields of the messages Event, Summary, Summary.Value and SessionLog of TensorFlow's event.proto and summary.proto.
constexpr std::uint32_t event_wall_time = 1, event_step = 2, event_file_version = 3, event_summary = 5,
                        event_session_log = 7;
constexpr std::uint32_t summary_value = 1, value_tag = 1, value_simple_value = 2, session_status = 1;
constexpr std::int64_t session_start = 1;

template <class Unsigned>
std::string little_endian(Unsigned number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

constexpr std::string_view name_begin = "events.out.tfevents.";
constexpr std::size_t digits_of_seconds = 10;

// Returns the seconds in the name of an event file; 0 for another file.
std::int64_t seconds_in(const std::string& name) {
  if (!name.starts_with(name_begin)) return 0;
  const char* const begin = name.data() + name_begin.size();
  const char* const end = begin + std::min(digits_of_seconds, name.size() - name_begin.size());
  std::int64_t seconds = 0;
  const auto [rest, error] = std::from_chars(begin, end, seconds);
  return error == std::errc() && rest == begin + digits_of_seconds ? seconds : 0;
}

// Returns the seconds for the name of a new file. TensorBoard reads the files of a folder in the order of
// their names, which must contain "tfevents". So the file of a continued run must come after the existing
// files, even if the clock of its host is behind.
std::int64_t seconds_of_name(const fs::path& folder) {
  constexpr std::int64_t most = 9'999'999'999;
  auto seconds = static_cast<std::int64_t>(seconds_since_1970());
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    seconds = std::max(seconds, seconds_in(entry->path().filename().string()) + 1);
  return std::min(seconds, most);
}

FileDescriptor create_in(const fs::path& folder, fs::path& path) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_create_folder_error(folder, error.value());
  const std::int64_t seconds = seconds_of_name(folder);
  for (int number = 0;; ++number) {
    path = folder / fmt::format("{}{:010}.{}.{}.{}", name_begin, seconds, host_name(), ::getpid(), number);
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (file.is_there()) return file;
    if (errno != EEXIST) throw_create_error(path, errno);
  }
}

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = remainder;
  }
  return table;
}();

// Returns the checksum as TFRecord stores it: rotated and shifted, so that a record may contain checksums
// itself.
std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8U);
}

std::string record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + masked_crc(length) + std::string(data) + masked_crc(data);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

TensorBoardLog::TensorBoardLog(const fs::path& folder) : file_(create_in(folder, path_)) {
  write_event(0, [](WireWriter& event) { event.bytes(event_file_version, "brain.Event:2"); });
}

void TensorBoardLog::step(const StepRecord& record) {
  std::vector<Figure> figures{{"train/loss", record.loss}};
  for (const MetricValue& metric : record.metrics) figures.push_back({"train/" + metric.name, metric.value});
  figures.push_back({"train/samples_per_second", record.images_per_second});
  figures.push_back({"train/learning_rate", record.learning_rate});
  write_figures(record.step, figures);
}

void TensorBoardLog::epoch(const EpochRecord& record) {
  std::vector<Figure> figures{{"train/epoch_loss", record.train_loss}};
  if (!std::isnan(record.val_loss)) {
    figures.push_back({"validation/loss", record.val_loss});
    for (const MetricValue& metric : record.val_metrics)
      figures.push_back({"validation/" + metric.name, metric.value});
  }
  write_figures(record.step, figures);
}

void TensorBoardLog::write_figures(std::int64_t step, const std::vector<Figure>& figures) {
  if (!std::exchange(has_begun_, true))
    write_event(step, [](WireWriter& event) {
      event.message(event_session_log, [&] { event.integer(session_status, session_start); });
    });
  write_event(step, [&](WireWriter& event) {
    event.message(event_summary, [&] {
      for (const Figure& figure : figures)
        event.message(summary_value, [&] {
          event.bytes(value_tag, figure.tag);
          event.real(value_simple_value, static_cast<float>(figure.value));
        });
    });
  });
}

template <class Fill>
void TensorBoardLog::write_event(std::int64_t step, const Fill& fill) {
  WireWriter event;
  event.real64(event_wall_time, seconds_since_1970());
  event.integer(event_step, step);
  fill(event);
  const std::string bytes = record(event.take());
  write_all(file_, std::as_bytes(std::span(bytes)), path_);
}

}  // namespace plexaura

#include "training/files/json_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "training/optimizers/plateau.h"

namespace plexaura {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns the number of bytes up to the end of the last complete line: a process that died, or a full disk,
// may have left the beginning of a line.
off_t end_of_lines(const FileDescriptor& file, off_t size) {
  std::array<char, 4096> piece{};
  while (size > 0) {
    const off_t begin = std::max<off_t>(size - static_cast<off_t>(piece.size()), 0);
    const ssize_t count = ::pread(file.number(), piece.data(), static_cast<std::size_t>(size - begin), begin);
    if (count != size - begin) return size;
    const auto at = std::string_view(piece.data(), static_cast<std::size_t>(count)).rfind('\n');
    if (at != std::string_view::npos) return begin + static_cast<off_t>(at) + 1;
    size = begin;
  }
  return 0;
}

// Removes the beginning of an unfinished line. Adds a line break after a complete line without one, and after
// text that is no line of ours.
void end_last_line(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const off_t end = end_of_lines(file, status.st_size);
  if (end == status.st_size) return;
  char first = ' ';
  char last = ' ';
  const bool is_read = ::pread(file.number(), &first, 1, end) == 1 &&
                       ::pread(file.number(), &last, 1, status.st_size - 1) == 1;
  if (!is_read || first != '{' || last == '}')
    return write_all(file, std::as_bytes(std::span("\n", 1)), path);
  if (::ftruncate(file.number(), end) != 0) throw_write_error(path, errno);
}

bool is_removed(const FileDescriptor& file) {
  struct stat status {};
  return ::fstat(file.number(), &status) == 0 && status.st_nlink == 0;
}

// Adds the fields of a record. Unknown values are written as null.
void add_exchange(const ExchangeRecord& record, std::vector<JsonField>& fields) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  fields.push_back({"exchange_bytes", record.bytes});
  if (record.sent_bytes)
    fields.push_back({"exchange_bytes_sent", *record.sent_bytes});
  else
    fields.push_back({"exchange_bytes_sent", unknown});
  fields.push_back({"exchange_seconds", record.seconds});
  fields.push_back({"exchange_seconds_waited", record.waited_seconds.value_or(unknown)});
  fields.push_back({"exchange_overlap", record.overlap().value_or(unknown)});
  fields.push_back({"exchange_gb_per_second", record.gb_per_second()});
}

void add_waits(const RankWaits& waits, std::vector<JsonField>& fields) {
  fields.push_back({"waited_share", waits.share()});
  const std::optional<RankWaits::Straggler> straggler = waits.straggler();
  if (!straggler) return;
  fields.push_back({"straggler", std::int64_t{straggler->number}});
  fields.push_back({"straggler_seconds", straggler->seconds});
}

}  // namespace

JsonLog::JsonLog(std::filesystem::path path, Owner owner) : path_(std::move(path)), owner_(owner) { open(); }

void JsonLog::open() {
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.is_there()) throw_create_error(path_, errno);
  lock();
  end_last_line(file_, path_);
}

// Locks the file. Does not lock a device, which may have several writers. Continues without a lock if the
// file system has none.
void JsonLog::lock() {
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const bool is_held = ::flock(file_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (is_held && owner_ == Owner::alone)
    throw UserError(fmt::format(
        "another run writes its log into '{}': wait until it has ended, or name another file with --log",
        path_.string()));
}

void JsonLog::write(std::span<const JsonField> fields) {
  OrderedJson line = OrderedJson::object();
  for (const JsonField& field : fields)
    std::visit([&](const auto& value) { line[std::string(field.name)] = value; }, field.value);
  if (is_removed(file_)) open();
  // Bytes that are not UTF-8, for example in a file name, become the replacement character.
  const std::string text = line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
  write_all(file_, std::as_bytes(std::span(text)), path_);
}

void JsonLog::step(const StepRecord& record) {
  std::vector<JsonField> fields{
      {"event", "step"}, {"step", record.step}, {"epoch", record.epoch}, {"loss", record.loss}};
  for (const MetricValue& metric : record.metrics) fields.push_back({metric.name, metric.value});
  fields.push_back({"images_per_second", record.images_per_second});
  fields.push_back({"learning_rate", record.learning_rate});
  write(fields);
}

void JsonLog::epoch(const EpochRecord& record) {
  std::vector<JsonField> fields{{"event", "epoch"},
                                {"epoch", record.epoch},
                                {"train_loss", record.train_loss},
                                {"val_loss", record.val_loss}};
  std::vector<std::string> rising;
  for (const MetricValue& metric : record.val_metrics) {
    fields.push_back({"val_" + metric.name, metric.value});
    if (mode_by_name(metric.name) == Plateau::max) rising.push_back(metric.name);
  }
  if (!record.val_metrics.empty()) fields.push_back({"rising", std::move(rising)});
  fields.push_back({"seconds", record.seconds});
  if (record.exchange) add_exchange(*record.exchange, fields);
  if (record.waits) add_waits(*record.waits, fields);
  if (record.loss_scale) {
    fields.push_back({"loss_scale", double{record.loss_scale->scale}});
    fields.push_back({"skipped_steps", std::int64_t{std::llround(record.loss_scale->skipped_steps)}});
  }
  write(fields);
}

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "training/file.h"

namespace plexaura {

// One field of a line. Numbers that are infinite or not a number are written as null: JSON has no other.
struct JsonField {
  std::string_view name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

// What a training step reports, over all ranks.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  double accuracy = 0;  // a share, from 0 to 1
  double images_per_second = 0;
  double learning_rate = 0;
  std::int64_t step_in_epoch = 0;  // from 1; for people, and not in the log
};

// What an epoch reports, over all ranks. What was validated is not a number where nothing was.
struct EpochRecord {
  std::int64_t epoch = 0;
  double train_loss = 0;
  double val_loss = 0;
  double val_accuracy = 0;  // a share, from 0 to 1
  double seconds = 0;
  std::optional<double> val_accuracy_top5 = {};  // where the model has more than five classes
};

// A log of JSON lines: one object a line, fields in the order given. A file that exists is continued (after a
// line break, where a killed process left half a line). Each line is handed to the system whole before the
// call returns, so a reader that follows the file sees whole lines. Throws UserError where the file cannot be
// opened, DeviceError with the file's name where it cannot be written (a full disk). One thread at a time.
class JsonLog {
 public:
  explicit JsonLog(std::filesystem::path path);

  void write(std::span<const JsonField> fields);
  void write(std::initializer_list<JsonField> fields) { write(std::span(fields.begin(), fields.size())); }
  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "training/files/file.h"
#include "training/files/records.h"

namespace plexaura {

// One field of a line. Infinite numbers and NaN are written as null, because JSON cannot represent them.
struct JsonField {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>> value;
};

// A log of JSON lines: one object in each line, with its fields in the given order. An existing file is
// continued; if a killed process has left an unfinished line, it is removed first. If the file is removed
// during the run, it is created again. Each line is passed to the system completely before the call returns,
// so a reader that follows the file sees complete lines. Throws UserError if the file cannot be opened, the
// disk is full or another run writes to the file, and DeviceError with the file's name if the disk fails. One
// thread at a time may use it.
class JsonLog {
 public:
  // The right to write to the file. `alone`: no other JsonLog may write to it while this one lives. `heir`: the
  // former writer was lost, but may still live.
  enum class Owner : std::uint8_t { alone, heir };

  explicit JsonLog(std::filesystem::path path, Owner owner = Owner::alone);

  void write(std::span<const JsonField> fields);
  void write(std::initializer_list<JsonField> fields) { write(std::span(fields.begin(), fields.size())); }
  void step(const StepRecord& record);
  // Writes the record of an epoch. If the model has metrics, the line also has the list "rising": the names
  // of the metrics for which larger values are better.
  void epoch(const EpochRecord& record);

 private:
  void open();
  void lock();

  std::filesystem::path path_;
  Owner owner_;
  FileDescriptor file_;
};

}  // namespace plexaura

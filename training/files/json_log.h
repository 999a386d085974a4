#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <variant>

#include "training/files/file.h"
#include "training/files/records.h"

namespace plexaura {

// One field of a line. Numbers that are infinite or not a number are written as null: JSON has no other.
struct JsonField {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

// A log of JSON lines: one object a line, fields in the order given. A file that exists is continued (after a
// line break, where a killed process left half a line), and one that is removed in between is made anew. Each
// line is handed to the system whole before the call returns, so a reader that follows the file sees whole lines.
// Throws UserError where the file cannot be opened, the disk is full or another run writes the same file, DeviceError with
// the file's name where the disk fails. One thread at a time.
class JsonLog {
 public:
  // Alone: no other log may write the file while this one lives. Heir: of a process that was lost, and may live.
  enum class Owner : std::uint8_t { alone, heir };

  explicit JsonLog(std::filesystem::path path, Owner owner = Owner::alone);

  void write(std::span<const JsonField> fields);
  void write(std::initializer_list<JsonField> fields) { write(std::span(fields.begin(), fields.size())); }
  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);

 private:
  void open();
  void lock();

  std::filesystem::path path_;
  Owner owner_;
  FileDescriptor file_;
};

}  // namespace plexaura

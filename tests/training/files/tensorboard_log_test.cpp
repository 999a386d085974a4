#include "training/files/tensorboard_log.h"

#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::tensorboard_log_test {

namespace {

struct ReadEvent {
  std::int64_t step = 0;
  std::string version;
  bool begins_session = false;
  std::map<std::string, float> figures;
};

template <class Number>
Number take(std::string_view& bytes) {
  Number number;
  REQUIRE(bytes.size() >= sizeof(number));
  std::memcpy(&number, bytes.data(), sizeof(number));
  bytes.remove_prefix(sizeof(number));
  return number;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<unsigned char>(bytes);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
}

std::string_view take_bytes(std::string_view& bytes, std::size_t count) {
  REQUIRE(bytes.size() >= count);
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

// Calls `field` with the number and the contents of each field of a message.
template <class Field>
void read_message(std::string_view bytes, const Field& field) {
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    std::string_view content = bytes;
    if ((key & 7) == 0)
      take_varint(bytes);
    else
      content = take_bytes(bytes, (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : take_varint(bytes));
    field(key >> 3, content);
  }
}

void read_figure(std::string_view bytes, ReadEvent& event) {
  std::string tag;
  float value = 0;
  read_message(bytes, [&](std::uint64_t number, std::string_view content) {
    if (number == 1) tag = content;
    if (number == 2) value = take<float>(content);
  });
  event.figures[tag] = value;
}

ReadEvent read_event(std::string_view bytes) {
  ReadEvent event;
  read_message(bytes, [&](std::uint64_t number, std::string_view content) {
    if (number == 1) CHECK(take<double>(content) > 1.7e9);
    if (number == 2) event.step = static_cast<std::int64_t>(take_varint(content));
    if (number == 3) event.version = content;
    if (number == 5) read_message(content, [&](auto, auto value) { read_figure(value, event); });
    if (number == 7) event.begins_session = content == "\x08\x01";
  });
  return event;
}

// Computes the checksum bit by bit.
std::uint32_t plain_masked_crc(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78U : crc >> 1;
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

std::vector<ReadEvent> read_events(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  std::string_view bytes = text;
  std::vector<ReadEvent> events;
  while (!bytes.empty()) {
    const std::string_view length_bytes = bytes.substr(0, 8);
    const auto length = take<std::uint64_t>(bytes);
    CHECK(take<std::uint32_t>(bytes) == plain_masked_crc(length_bytes));
    const std::string_view data = take_bytes(bytes, length);
    CHECK(take<std::uint32_t>(bytes) == plain_masked_crc(data));
    events.push_back(read_event(data));
  }
  return events;
}

}  // namespace

TEST_CASE("the checksum is that of RFC 3720") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
}

TEST_CASE("an event file holds the figures of steps and epochs by tag") {
  const TemporaryFolder folder;
  TensorBoardLog log(folder / "runs/one");
  log.step({.step = 300,
            .epoch = 1,
            .loss = 0.5,
            .metrics = {{"accuracy", 0.25}},
            .images_per_second = 120.5,
            .learning_rate = 0.01});
  log.epoch({.epoch = 1,
             .train_loss = 1.5,
             .val_loss = 2,
             .val_metrics = {{"accuracy", std::numeric_limits<double>::infinity()}},
             .step = 301});
  CHECK(log.path().filename().string().starts_with("events.out.tfevents."));
  const std::vector<ReadEvent> events = read_events(log.path());
  REQUIRE(events.size() == 4);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[1].begins_session);
  CHECK(events[1].step == 300);
  CHECK(events[2].step == 300);
  CHECK(events[2].figures == std::map<std::string, float>{{"train/loss", 0.5F},
                                                          {"train/accuracy", 0.25F},
                                                          {"train/samples_per_second", 120.5F},
                                                          {"train/learning_rate", 0.01F}});
  CHECK(events[3].step == 301);
  CHECK(events[3].figures ==
        std::map<std::string, float>{{"train/epoch_loss", 1.5F},
                                     {"validation/loss", 2.F},
                                     {"validation/accuracy", std::numeric_limits<float>::infinity()}});
}

TEST_CASE("an epoch without validation has the training loss only, and two logs have files of their own") {
  const TemporaryFolder folder;
  TensorBoardLog first(folder.path());
  TensorBoardLog second(folder.path());
  CHECK(first.path() != second.path());
  second.epoch({.train_loss = 1, .val_loss = std::numeric_limits<double>::quiet_NaN(), .step = 7});
  CHECK(read_events(second.path()).back().figures == std::map<std::string, float>{{"train/epoch_loss", 1.F}});
  CHECK(read_events(first.path()).size() == 1);
}

TEST_CASE("a folder that cannot be made is an error that names it") {
  const TemporaryFolder folder;
  folder.write("file", "");
  for (const char* place : {"file", "file/below"})
    CHECK(user_error([&] { TensorBoardLog(folder / place); }) ==
          "cannot create '" + (folder / place).string() +
              "': Not a directory; name a folder, not a file, at a place that can be written");
}

TEST_CASE(
    "a later event file comes after the earlier ones by name, whatever the clocks of their hosts said") {
  const TemporaryFolder folder;
  folder.write("events.out.tfevents.9000000000.other.1.0", "");
  folder.write("events.out.tfevents.9999.other.1.0", "");  // not the name of an event file of ours
  const auto name = [&] { return TensorBoardLog(folder.path()).path().filename().string(); };
  CHECK(name().starts_with("events.out.tfevents.9000000001."));
  CHECK(name().starts_with("events.out.tfevents.9000000002."));
}

TEST_CASE("a full disk is an error that names the file") {
  const TemporaryFolder folder;
  TensorBoardLog log(folder.path());
  const FullDisk full(100);
  const std::string error = user_error([&] {
    for (int step = 1; step < 10; ++step) log.step({.step = step});
  });
  CAPTURE(error);
  CHECK(error.find(log.path().string()) != std::string::npos);
}

}  // namespace plexaura::testing::tensorboard_log_test

#include "training/files/json_log.h"

#include <doctest/doctest.h>
#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::json_log_test {

TEST_CASE("a log holds one object a line, fields in the order given") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  log.step({.step = 3,
            .epoch = 1,
            .loss = 0.5,
            .metrics = {{"accuracy", 0.25}},
            .images_per_second = 120.5,
            .learning_rate = 0.01});
  log.epoch(
      {.epoch = 1, .train_loss = 1.5, .val_loss = 2, .val_metrics = {{"accuracy", 0.75}}, .seconds = 12.25});
  log.write({{"event", "note"}, {"flag", true}, {"text", "a \"quoted\"\nline"}});
  CHECK(
      read_text(folder / "log") ==
      "{\"event\":\"step\",\"step\":3,\"epoch\":1,\"loss\":0.5,\"accuracy\":0.25,\"images_per_second\":120.5,"
      "\"learning_rate\":0.01}\n"
      "{\"event\":\"epoch\",\"epoch\":1,\"train_loss\":1.5,\"val_loss\":2.0,\"val_accuracy\":0.75,"
      "\"rising\":[\"accuracy\"],\"seconds\":12.25}\n"
      "{\"event\":\"note\",\"flag\":true,\"text\":\"a \\\"quoted\\\"\\nline\"}\n");
}

TEST_CASE("a log holds what a rank has exchanged, and null for what is not known") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  log.epoch({.exchange = ExchangeRecord{
                 .bytes = 3000, .sent_bytes = 1500, .seconds = 2, .overlaps = true, .waited_seconds = 0.5}});
  log.epoch({.exchange = ExchangeRecord{.bytes = 3000, .seconds = 2, .overlaps = true}});
  const std::string begin =
      "{\"event\":\"epoch\",\"epoch\":0,\"train_loss\":0.0,\"val_loss\":0.0,\"seconds\":0.0,"
      "\"exchange_bytes\":3000,\"exchange_bytes_sent\":";
  CHECK(read_text(folder / "log") ==
        begin +
            "1500,\"exchange_seconds\":2.0,\"exchange_seconds_waited\":0.5,\"exchange_overlap\":0.75,"
            "\"exchange_gb_per_second\":1.5e-06}\n" +
            begin +
            "null,\"exchange_seconds\":2.0,\"exchange_seconds_waited\":null,\"exchange_overlap\":null,"
            "\"exchange_gb_per_second\":1.5e-06}\n");
}

TEST_CASE("a log holds how long ranks waited, and for whom if that was long") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  log.epoch({.waits = RankWaits{.epoch_seconds = 8, .ranks = {{1, 2.5}, {2, 0.5}, {3, 3}}}});
  log.epoch({.waits = RankWaits{.epoch_seconds = 8, .ranks = {{1, 2}, {2, 2}}}});
  const std::string begin =
      R"({"event":"epoch","epoch":0,"train_loss":0.0,"val_loss":0.0,"seconds":0.0,"waited_share":0.25)";
  CHECK(read_text(folder / "log") ==
        begin + ",\"straggler\":2,\"straggler_seconds\":2.25}\n" + begin + "}\n");
}

TEST_CASE("numbers that JSON cannot hold are null, and bytes that are no text are replaced") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  log.write({{"nan", std::numeric_limits<double>::quiet_NaN()},
             {"infinite", -std::numeric_limits<double>::infinity()},
             {"bytes", "\xff"}});
  CHECK(read_text(folder / "log") == "{\"nan\":null,\"infinite\":null,\"bytes\":\"\xef\xbf\xbd\"}\n");
}

TEST_CASE("a log is continued, without what a process that died or a full disk left of a line") {
  const TemporaryFolder folder;
  for (const std::int64_t run : {1, 2}) {
    JsonLog log(folder / "log");
    log.write({{"run", run}});
  }
  write_text(folder / "log", read_text(folder / "log") + "{\"ev");
  JsonLog(folder / "log").write({{"run", std::int64_t{3}}});
  CHECK(read_text(folder / "log") == "{\"run\":1}\n{\"run\":2}\n{\"run\":3}\n");
  write_text(folder / "log", "{\"" + std::string(10'000, 'x'));
  JsonLog(folder / "log").write({{"run", std::int64_t{4}}});
  CHECK(read_text(folder / "log") == "{\"run\":4}\n");
  for (const std::string whole : {"{\"run\":5}", "a note"}) {
    write_text(folder / "log", whole);
    JsonLog(folder / "log").write({{"run", std::int64_t{6}}});
    CHECK(read_text(folder / "log") == whole + "\n{\"run\":6}\n");
  }
}

TEST_CASE("a log has one writer at a time, but that another takes over from a lost one") {
  const TemporaryFolder folder;
  {
    JsonLog first(folder / "log");
    CHECK(user_error([&] { JsonLog(folder / "log"); }) ==
          "another run writes its log into '" + (folder / "log").string() +
              "': wait until it has ended, or name another file with --log");
    JsonLog heir(folder / "log", JsonLog::Owner::heir);
    heir.write({{"a", std::int64_t{1}}});
  }
  JsonLog(folder / "log").write({{"a", std::int64_t{2}}});
  CHECK(read_text(folder / "log") == "{\"a\":1}\n{\"a\":2}\n");
}

TEST_CASE("a line is in the file as soon as it is written") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  for (std::int64_t line = 1; line <= 3; ++line) {
    log.write({{"a", line}});
    CHECK(read_text(folder / "log").size() == static_cast<std::size_t>(line) * 8);
  }
}

TEST_CASE("a log that is removed in between is made anew") {
  const TemporaryFolder folder;
  JsonLog log(folder / "log");
  log.write({{"a", std::int64_t{1}}});
  std::filesystem::remove(folder / "log");
  log.write({{"a", std::int64_t{2}}});
  CHECK(read_text(folder / "log") == "{\"a\":2}\n");
}

TEST_CASE("a log that cannot be written names its file") {
  JsonLog log("/dev/full");
  CHECK(user_error([&] { log.step({}); }) ==
        "cannot write '/dev/full': No space left on device; free space or name another place");
  CHECK(user_error([] { JsonLog missing("no/such/folder/log"); }) ==
        "cannot create 'no/such/folder/log': No such file or directory; name a file in a folder that exists "
        "and can be written");
}

}  // namespace plexaura::testing::json_log_test

#include "app/options/byte_count.h"

#include <doctest/doctest.h>

namespace plexaura::testing::byte_count_test {

TEST_CASE("a number of bytes may have a unit") {
  CHECK(parse_byte_count("4096") == 4096);
  CHECK(parse_byte_count("4096 B") == 4096);
  CHECK(parse_byte_count("2 GB") == 2'000'000'000);
  CHECK(parse_byte_count("2GB") == 2'000'000'000);
  CHECK(parse_byte_count("500 MB") == 500'000'000);
  CHECK(parse_byte_count("8 kB") == 8000);
  CHECK(parse_byte_count("1 TB") == 1'000'000'000'000);
  CHECK(parse_byte_count("1.5 GiB") == 1'610'612'736);
  CHECK(parse_byte_count("1 KiB") == 1024);
  CHECK(parse_byte_count("3 MiB") == 3'145'728);
  CHECK(parse_byte_count("1 TiB") == 1'099'511'627'776);
}

TEST_CASE("other texts are no number of bytes") {
  for (const char* text : {"", "GB", "2 gb", "2 mb", "-2 GB", "0", "0.5", "nan", "inf", "1e30", "9e18 kB",
                           "2  GB", "2 GB ", " 2", "two", "2 GBs", "0x10"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_byte_count(text).has_value());
  }
}

TEST_CASE("a wrong number of bytes is refused at its place in the file") {
  const Config config = Config::parse("training:\n  memory: 2 gigs\n", "test.yaml");
  CHECK_THROWS_WITH(bytes_in(config.section("training"), "memory", "2 gigs"),
                    "test.yaml:2:11: training.memory is '2 gigs'; it must be a number of bytes of 1 or more, "
                    "which may have a unit, such as 2 GB, 500 MB or 1.5 GiB");
}

}  // namespace plexaura::testing::byte_count_test

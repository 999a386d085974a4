#include "distributed/wire/texts.h"

#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::texts_test {

namespace {

const std::string no_list =
    "another process has sent something other than a list of texts; start all processes from the same "
    "build of Plexaura";

}  // namespace

TEST_CASE("texts: any content survives packing") {
  const std::vector<std::string> texts{"", "3:abc", "line\n", std::string("\0x", 2)};
  CHECK(unpack(pack(texts)) == texts);
  CHECK(unpack(pack({})).empty());
  const std::map<std::string, std::string> facts{{"", "3:abc"}, {"line\n", ""}, {"a", "b"}};
  CHECK(unpack_facts(pack_facts(facts)) == facts);
  CHECK(unpack_facts(pack_facts({})).empty());
}

TEST_CASE("texts: what pack() has not made is refused") {
  // If the last length is added without a check of its size, the sum wraps to the beginning.
  for (const char* text : {"x", "0", "12", ":abc", "-1:a", "+1:a", " 1:a", "4:abc", "1:ab", "3:abc1",
                           "hello world", "99999999999999999999999:a", "18446744073709551595:"}) {
    CAPTURE(text);
    CHECK(device_error([&] { unpack(text); }) == no_list);
    CHECK(device_error([&] { unpack_facts(text); }) == no_list);
  }
}

TEST_CASE("texts: a name without its text is refused") {
  CHECK(device_error([] { unpack_facts(pack({"a", "b", "c"})); }) == no_list);
}

}  // namespace plexaura::testing::texts_test

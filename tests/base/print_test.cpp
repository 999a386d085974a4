#include "core/base/print.h"

#include <doctest/doctest.h>
#include <string>

namespace plexaura::testing::print_test {

TEST_CASE("control characters are shown, and nothing else is changed") {
  CHECK(printable("plain text, 100 %, C:\\x") == "plain text, 100 %, C:\\x");
  CHECK(printable("a\nb\tc\x1b[31m\x7f") == "a\\x0ab\\x09c\\x1b[31m\\x7f");
  CHECK(printable(std::string("before\0after", 12)) == "before\\x00after");
  CHECK(printable("größer – Übung, 漢字, ☃") == "größer – Übung, 漢字, ☃");
}

TEST_CASE("so are those behind ASCII, which begin a command on some terminals") {
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // CSI in UTF-8
  CHECK(printable("\x9b"
                  "31m") == "\\x9b31m");  // CSI in Latin-1
}

TEST_CASE("so are bytes that are no UTF-8") {
  CHECK(printable("Ü\x9b") == "Ü\\x9b");
  CHECK(printable("\xe6"
                  "c1.bias") == "\\xe6c1.bias");
  CHECK(printable("\xff\xc0\x80") == "\\xff\\xc0\\x80");
  CHECK(printable(std::string_view("漢").substr(0, 2)) == "\\xe6\\xbc");  // an incomplete character
  CHECK(printable("\xe6漢") == "\\xe6漢");
}

}  // namespace plexaura::testing::print_test

#include "core/print.h"

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
                  "31m") == "\xc2\\x9b31m");  // in UTF-8
  CHECK(printable("\x9b"
                  "31m") == "\\x9b31m");  // in Latin-1
  CHECK(printable("Ü\x9b") == "Ü\x9b");   // part of no command: the byte goes on a letter
}

}  // namespace plexaura::testing::print_test

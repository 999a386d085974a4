#include "training/data/text/token_windows.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <iterator>
#include <numeric>

#include "tests/support/error_text.h"

namespace plexaura::testing::token_windows_test {

namespace {

using Numbers = std::vector<std::int64_t>;

// Returns the tokens and targets of a window.
std::vector<Numbers> read(const TokenWindows& windows, std::int64_t index, std::size_t length) {
  std::vector<Numbers> values(2, Numbers(length));
  windows.read_fields(index, {},
                      std::vector{std::as_writable_bytes(std::span(values[0])),
                                  std::as_writable_bytes(std::span(values[1]))});
  return values;
}

}  // namespace

TEST_CASE("windows of the default stride predict each token once") {
  constexpr std::int64_t length = 4;
  for (std::int64_t tokens = 2; tokens < 12; ++tokens) {
    CAPTURE(tokens);
    std::vector<std::int32_t> text(static_cast<std::size_t>(tokens));
    std::iota(text.begin(), text.end(), 0);
    const TokenWindows windows(text, length, window_starts(tokens, length, length));
    CHECK(windows.size() == (tokens - 2) / length + 1);
    Numbers predicted;
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const std::vector<Numbers> values = read(windows, i, length);
      std::ranges::copy_if(values[1], std::back_inserter(predicted),
                           [](std::int64_t target) { return target != no_target; });
    }
    Numbers expected(static_cast<std::size_t>(tokens - 1));
    std::iota(expected.begin(), expected.end(), 1);
    CHECK(predicted == expected);
  }
}

TEST_CASE("a window has the tokens, those after them, and padding after the end of the text") {
  const TokenWindows windows({5, 6, 7, 8, 9}, 3, {0, 3});
  CHECK(windows.fields() ==
        std::vector<Field>{{"samples", {DType::int64, {3}}}, {"targets", {DType::int64, {3}}}});
  CHECK(read(windows, 0, 3) == std::vector<Numbers>{{5, 6, 7}, {6, 7, 8}});
  CHECK(read(windows, 1, 3) == std::vector<Numbers>{{8, 9, 0}, {9, no_target, no_target}});
}

TEST_CASE("windows may overlap, and end when one contains the last token") {
  CHECK(window_starts(9, 4, 2) == Numbers{0, 2, 4});
  CHECK(window_starts(10, 4, 2) == Numbers{0, 2, 4, 6});
  CHECK(window_starts(3, 4, 1) == Numbers{0});
}

TEST_CASE("windows that contain nothing are refused") {
  CHECK(user_error([] { window_starts(1, 4, 4); }) ==
        "1 tokens cannot be divided into windows of 4 tokens, each 4 after the one before; give at least 2 "
        "tokens, and numbers above 0");
  CHECK(!user_error([] { window_starts(9, 0, 4); }).empty());
  CHECK(!user_error([] { window_starts(9, 4, 0); }).empty());
  CHECK(user_error([] {
          TokenWindows({1, 2}, 2, {1});
        }) ==
        "a window begins at token 1 of a text of 2 tokens; it must begin at one that is followed by another");
  CHECK(!user_error([] { TokenWindows({1, 2}, 2, {-1}); }).empty());
  CHECK(!user_error([] { TokenWindows({1, 2}, 0, {}); }).empty());
}

}  // namespace plexaura::testing::token_windows_test

#include "core/base/busy.h"

#include <doctest/doctest.h>
#include <optional>
#include <thread>

#include "tests/support/error_text.h"

namespace plexaura::testing::busy_test {

namespace {

std::string refusal(BusyFlag& flag) {
  return user_error([&] { const InUse use(flag, "a Thing", "another thread is in it"); });
}

}  // namespace

TEST_CASE("a use is refused while another lasts, and the error says whose that is") {
  BusyFlag flag;
  std::optional<InUse> use(std::in_place, flag, "a Thing", "nobody is told this");
  CHECK(
      refusal(flag) ==
      "a Thing was called from within another call of itself, by what that call runs (a kernel, a model or a "
      "host point); call it when the first call has returned");
  std::string text;
  std::thread([&] { text = refusal(flag); }).join();
  CHECK(text == "another thread is in it");
  CHECK(!refusal(flag).empty());  // a refused use does not end the use before it
  use.reset();
  CHECK(refusal(flag).empty());
  std::thread([&] { text = refusal(flag); }).join();
  CHECK(text.empty());
}

}  // namespace plexaura::testing::busy_test

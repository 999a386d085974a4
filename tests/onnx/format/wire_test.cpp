#include "onnx/format/wire.h"

#include <doctest/doctest.h>
#include <limits>

#include "training/files/wire_writer.h"

namespace plexaura::wire_test {

TEST_CASE("the reader reads what the writer writes") {
  WireWriter to;
  to.integer(1, -1);
  to.integer(2, std::numeric_limits<std::int64_t>::max());
  to.real(3, 0.5F);
  to.message(536'870'911, [&] { to.bytes(1, std::string(300, 'a')); });
  const std::string bytes = to.take();
  onnx::WireReader from(bytes);
  REQUIRE(from.next());
  CHECK(from.integer() == -1);
  REQUIRE(from.next());
  CHECK(from.integer() == std::numeric_limits<std::int64_t>::max());
  REQUIRE(from.next());
  CHECK(from.real() == 0.5F);
  REQUIRE(from.next());
  CHECK(from.number() == 536'870'911);
  onnx::WireReader inner(from.bytes());
  REQUIRE(inner.next());
  CHECK(inner.text() == std::string(300, 'a'));
  CHECK(!from.next());
  CHECK(to.take().empty());
}

}  // namespace plexaura::wire_test

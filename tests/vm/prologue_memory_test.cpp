#include "core/vm/prologue_memory.h"

#include <doctest/doctest.h>
#include <stdexcept>

#include "tests/support/backend.h"

namespace plexaura::testing::prologue_memory_test {

TEST_CASE("a prologue is computed once for each version of the store") {
  PrologueMemory memory;
  int computed = 0;
  const auto refresh = [&](std::uint64_t version) { memory.refresh(version, [&] { ++computed; }); };
  refresh(1);
  refresh(1);
  CHECK(computed == 1);
  refresh(2);
  refresh(2);
  CHECK(computed == 2);
}

TEST_CASE("a prologue that failed is computed again") {
  PrologueMemory memory;
  int computed = 0;
  const auto compute = [&] { ++computed; };
  memory.refresh(1, compute);
  CHECK_THROWS(memory.refresh(2, [] { throw std::runtime_error("no"); }));
  memory.refresh(1, compute);  // the failed one may have written some values of version 2
  CHECK(computed == 2);
}

TEST_CASE("all who ask for a prologue's memory get the same") {
  PrologueMemory memory;
  const Address address = memory.allocate(test_backend(), 256);
  CHECK(address != nullptr);
  CHECK(memory.allocate(test_backend(), 256) == address);
}

}  // namespace plexaura::testing::prologue_memory_test

#include "core/base/file_descriptor.h"

#include <array>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace plexaura::testing::file_descriptor_test {

namespace {

std::array<int, 2> pipe_ends() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return ends;
}

bool is_open(int number) { return ::fcntl(number, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a file descriptor is closed with its last owner") {
  const auto [read_end, write_end] = pipe_ends();
  {
    FileDescriptor outer;
    CHECK_FALSE(outer.is_there());
    {
      FileDescriptor inner(read_end);
      CHECK(inner.is_there());
      CHECK(inner.number() == read_end);
      const FileDescriptor other(write_end);
      outer = std::move(inner);
    }
    CHECK_FALSE(is_open(write_end));
    CHECK(is_open(read_end));
    const FileDescriptor last(std::move(outer));
    CHECK_FALSE(outer.is_there());  // NOLINT(bugprone-use-after-move): that is what is tested
    CHECK(is_open(read_end));
  }
  CHECK_FALSE(is_open(read_end));
}

TEST_CASE("a file descriptor that was closed is there no more, and its number is left alone") {
  const auto [read_end, write_end] = pipe_ends();
  const FileDescriptor writer(write_end);
  {
    FileDescriptor reader(read_end);
    CHECK(reader.close());
    CHECK_FALSE(reader.is_there());
    REQUIRE(::dup2(write_end, read_end) == read_end);  // another file gets the number
  }
  CHECK(is_open(read_end));
  const FileDescriptor again(read_end);
}

}  // namespace plexaura::testing::file_descriptor_test

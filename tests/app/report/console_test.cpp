#include "app/report/console.h"

#include <array>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "training/loop/signals.h"

namespace plexaura::testing::console_test {

namespace {

// A pipe with a capacity of one page.
struct SmallPipe {
  SmallPipe() {
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    reader = FileDescriptor(ends[0]);
    writer = FileDescriptor(ends[1]);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
  }
  std::string read_some() const {
    std::string text(1000, '\0');
    text.resize(static_cast<std::size_t>(::read(reader.number(), text.data(), text.size())));
    return text;
  }
  FileDescriptor reader;
  FileDescriptor writer;
};

}  // namespace

TEST_CASE("a console waits for a slow reader") {
  const SmallPipe pipe;
  const std::string text(100'000, 'x');
  std::string read;
  std::thread reader([&] {
    while (read.size() < text.size()) read += pipe.read_some();
  });
  Console(pipe.writer.number()).print(text);
  reader.join();
  CHECK(read == text);
}

TEST_CASE("after a signal a console does not wait for a reader that has stopped") {
  const StopSignals signals;
  const SmallPipe pipe;
  Console console(pipe.writer.number());
  std::raise(SIGTERM);
  console.print("there is room");
  CHECK(pipe.read_some() == "there is room");
  console.print(std::string(100'000, 'x'));
  console.print("nobody reads this");
}

TEST_CASE("a console does not change the file that others write to") {
  const SmallPipe pipe;
  Console console(pipe.writer.number());
  CHECK((fcntl(pipe.writer.number(), F_GETFL) & O_NONBLOCK) == 0);
}

}  // namespace plexaura::testing::console_test

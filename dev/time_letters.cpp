// Times letters between jobs over a connection of this host, and the same bytes without encryption:
// build/dev/time_letters. Prints a table in Markdown.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include "tools/tool.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "distributed/servers/jobs/connection.h"
#include "distributed/servers/jobs/line.h"

namespace plexaura {
namespace {

struct Arguments {
  std::int64_t megabytes = 100;
  std::int64_t rounds = 7;
};

using Pair = std::pair<FileDescriptor, FileDescriptor>;

Pair connected() {
  ServerPlace place;
  const FileDescriptor listener = listen_at({}, place);
  FileDescriptor one = connect_to(place, 10);
  FileDescriptor other(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK));
  if (!one.is_there() || !other.is_there()) throw DeviceError("this host cannot connect to itself");
  return {std::move(one), std::move(other)};
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Times {
  double seconds;
  // The processor time of both ends together, which other programs on this host hardly change.
  double of_processor;
};

Times time_rounds(const Arguments& arguments, const std::function<void()>& work) {
  std::vector<double> seconds;
  std::vector<double> of_processor;
  for (std::int64_t i = 0; i < arguments.rounds; ++i) {
    const double begin = seconds_now();
    const std::clock_t processor_begin = std::clock();
    work();
    seconds.push_back(seconds_now() - begin);
    of_processor.push_back(static_cast<double>(std::clock() - processor_begin) / CLOCKS_PER_SEC);
  }
  return {median_of(seconds), median_of(of_processor)};
}

Times time_sealed(const Arguments& arguments, const std::vector<std::byte>& content) {
  auto [one, other] = connected();
  const std::string key = make_key();
  Line near(std::move(one), Seal::Side::client, key, content.size());
  Line far(std::move(other), Seal::Side::server, key, content.size());
  for (bool is_proven = false; !is_proven; is_proven = far.prove() && near.is_proven()) near.prove();
  return time_rounds(arguments, [&] {
    std::jthread sender([&] {
      near.post({.say = Say::push}, content);
      while (!near.flush()) await_line(near, true, 1);
    });
    while (!far.take()) await_line(far, false, 1);
  });
}

void wait_for(const FileDescriptor& socket, short event) {
  pollfd wait{socket.number(), event, 0};
  poll(&wait, 1, 1000);
}

Times time_plain(const Arguments& arguments, const std::vector<std::byte>& content) {
  const auto [one, other] = connected();
  std::vector<std::byte> taken(content.size());
  return time_rounds(arguments, [&, &near = one, &far = other] {
    std::jthread sender([&] {
      for (std::size_t at = 0; at < content.size();) {
        const ssize_t sent = send(near.number(), content.data() + at, content.size() - at, MSG_NOSIGNAL);
        if (sent > 0) at += static_cast<std::size_t>(sent);
        if (sent < 0) wait_for(near, POLLOUT);
      }
    });
    for (std::size_t at = 0; at < taken.size();) {
      const ssize_t got = recv(far.number(), taken.data() + at, taken.size() - at, 0);
      if (got > 0) at += static_cast<std::size_t>(got);
      if (got < 0) wait_for(far, POLLIN);
    }
  });
}

void print_times(const Arguments& arguments) {
  const std::vector<std::byte> content(static_cast<std::size_t>(arguments.megabytes) * 1'000'000,
                                       std::byte{7});
  const Times plain = time_plain(arguments, content);
  const Times sealed = time_sealed(arguments, content);
  print_output(
      fmt::format("| {} MB, one host | ms | ms of processors |\n|---|---|---|\n", arguments.megabytes));
  for (const auto& [name, times] : {std::pair("bytes without a seal", plain), std::pair("a letter", sealed)})
    print_output(
        fmt::format("| {} | {:.0f} | {:.0f} |\n", name, 1000 * times.seconds, 1000 * times.of_processor));
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  Arguments arguments;
  CLI::App app("Times letters between jobs, beside the same bytes without a seal", "time_letters");
  app.add_option("--megabytes", arguments.megabytes, "content of a letter (100)")
      ->check(whole_number(1, 4000));
  app.add_option("--rounds", arguments.rounds, "measurements, of which the median is printed (7)")
      ->check(whole_number(1));
  return run_tool(app, argc, argv, [&] { print_times(arguments); });
}

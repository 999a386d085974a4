#include "distributed/servers/jobs/visitor.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <stop_token>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/events.h"
#include "core/base/print.h"
#include "distributed/servers/jobs/connection.h"
#include "distributed/wire/texts.h"

namespace plexaura {

namespace {

constexpr double look_seconds = 0.1;
constexpr double proof_seconds = 5;  // longest time to connect and to prove, before the file is read again
// Largest number of bytes of an answer without weights.
constexpr std::size_t most_of_answers = std::size_t{16} << 20;

}  // namespace

Visitor::Visitor(std::filesystem::path file, double deadline_seconds)
    : file_(std::move(file)), deadline_(deadline_seconds) {
  connect();
  beats_ = std::jthread([this](const std::stop_token& stop) {
    const std::chrono::duration<double> pause(std::min(1.0, deadline_ / 4));
    std::unique_lock lock(mutex_);
    while (!woken_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) beat();
  });
}

Visitor::~Visitor() = default;

// Shows the server that this process is alive. Called with the lock. A broken connection is ignored here,
// since await() finds it.
void Visitor::beat() {
  if (!line_ || !line_->is_proven()) return;
  try {
    if (!line_->flush()) return;
    line_->post({.say = Say::beat});
    line_->flush();
  } catch (const LineLost&) {
    return;
  }
}

void Visitor::connect() {
  const double until = seconds_now() + deadline_;
  for (check_server_file(file_); !try_to_connect(until); check_server_file(file_)) {
    if (seconds_now() > until) fail("names no server that answered");
    std::this_thread::sleep_for(std::chrono::duration<double>(look_seconds));
  }
}

bool Visitor::try_to_connect(double until) {
  const auto place = read_server_file(file_);
  if (!place) return false;
  const std::string where = fmt::format("{}, port {}", place->host, place->port);
  FileDescriptor socket = connect_to(*place, std::clamp(until - seconds_now(), 0.0, proof_seconds));
  try {
    if (!socket.is_there()) throw LineLost("no program listens there");
    {
      const std::lock_guard lock(mutex_);
      line_.emplace(std::move(socket), Seal::Side::client, place->key, most_of_answers);
    }
    prove(std::min(until, seconds_now() + proof_seconds));
    post({.say = Say::ask});
    samples_ = facts_of(await(Say::told, until));
    return true;
  } catch (const LineLost& loss) {
    last_failure_ = fmt::format(" (at {}: {})", where, loss.what());
    return false;
  }
}

// Continues the proof until `until`. Another program may listen at the place, so bytes that arrive before the
// proof do not extend the time.
void Visitor::prove(double until) {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (line_->prove()) return;
    }
    if (seconds_now() > until)
      throw LineLost("the program that listens there has not proven that it knows the key");
    await_line(*line_, !line_->has_sent_all(), look_seconds);
  }
}

LineLetter Visitor::come_in(double until) {
  post({.say = Say::join, .number = number_}, bytes_of(pack_facts(facts_)));
  {
    const std::lock_guard lock(mutex_);
    line_->take_up_to(std::max(weight_bytes_, most_of_answers));
  }
  LineLetter welcome = await(Say::welcome, until);
  const bool has_number = welcome.head.number > 0 && welcome.head.number <= std::numeric_limits<int>::max();
  if (welcome.content.size() != weight_bytes_ || !has_number)
    throw LineLost("its weights are of another size, or its number for this client is none");
  number_ = welcome.head.number;
  return welcome;
}

std::vector<std::byte> Visitor::join(VisitFacts facts, std::size_t weight_bytes) {
  facts_ = std::move(facts);
  weight_bytes_ = weight_bytes;
  LineLetter welcome;
  try {
    welcome = come_in(seconds_now() + deadline_);
  } catch (const LineLost& loss) {
    fail_with(fmt::format("names a server that was lost before this client had joined: {}", loss.what()));
  }
  version_ = welcome.head.version;
  joined_at_ = seconds_now();
  return std::move(welcome.content);
}

std::vector<std::byte> Visitor::exchange(std::span<const std::byte> push, std::int64_t steps) {
  const EventSpan span(EventKind::wait, "the weights of the server");
  const double begin = seconds_now();
  while (true) {
    try {
      post({.say = Say::push,
            .version = version_,
            .steps = steps,
            .elapsed_seconds = begin - joined_at_,
            .waited_seconds = waited_},
           steps > 0 ? push : std::span<const std::byte>());
      LineLetter answer = await(Say::weights, seconds_now() + deadline_);
      if (answer.content.size() != push.size()) throw LineLost("its weights are of another size");
      version_ = answer.head.version;
      waited_ += seconds_now() - begin;
      return std::move(answer.content);
    } catch (const LineLost& loss) {
      print_error(fmt::format("the server of {} was lost: {}; this client waits {:g} s for it to come back",
                              file_.string(), loss.what(), deadline_));
      come_back();
    }
  }
}

// Joins again after the connection broke. Ignores the weights of the welcome: the push is repeated, and its
// answer brings weights.
void Visitor::come_back() {
  const double until = seconds_now() + deadline_;
  while (seconds_now() <= until) {
    try {
      if (try_to_connect(until)) {
        come_in(until);
        print_error(
            fmt::format("the server of {} is back, and this is its client {}", file_.string(), number_));
        return;
      }
    } catch (const LineLost&) {
      // The error is ignored: the server may still come back.
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(look_seconds));
  }
  fail("names no server any more that answered");
}

void Visitor::leave() {
  try {
    post({.say = Say::leave});
    const double until = seconds_now() + deadline_;
    const std::lock_guard lock(mutex_);
    while (!line_->flush() && seconds_now() < until) await_line(*line_, true, look_seconds);
  } catch (const LineLost&) {
    return;  // every push has already reached the server
  }
}

void Visitor::post(LineHead head, std::span<const std::byte> content) {
  const std::lock_guard lock(mutex_);
  line_->post(head, content);
}

// Waits for a letter. Does not give up the server while bytes move, however long a letter takes on a slow
// link.
LineLetter Visitor::await(Say wanted, double until) {
  std::uint64_t moved = 0;
  while (true) {
    std::optional<LineLetter> letter;
    bool sends = false;
    {
      const std::lock_guard lock(mutex_);
      sends = !line_->flush();
      letter = line_->take();
      if (std::exchange(moved, line_->moved()) != line_->moved())
        until = std::max(until, seconds_now() + deadline_);
    }
    if (letter && letter->head.say == Say::refused) throw UserError(text_of(*letter));
    if (letter && letter->head.say == wanted) return *std::move(letter);
    if (letter) throw LineLost("the letter that came was not an answer of a server");
    if (seconds_now() > until)
      fail_with(fmt::format("names a server that has not answered for {:g} s", deadline_));
    await_line(*line_, sends, look_seconds);
  }
}

void Visitor::fail(std::string_view what) const {
  fail_with(fmt::format("{} within {:g} s{}", what, deadline_, last_failure_));
}

void Visitor::fail_with(std::string_view what) const {
  throw DeviceError(fmt::format("--join: {} {}; see whether the server runs, and start this client again",
                                file_.string(), what));
}

}  // namespace plexaura

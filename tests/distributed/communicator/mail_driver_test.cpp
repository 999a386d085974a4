#include "distributed/communicator/mail_driver.h"

#include <array>
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/distributed/wire/stub_transport.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::mail_driver_test {

namespace {

constexpr std::array tags{3, 5};

Topology two_ranks() {
  ProcessPlace other = this_place();
  other.number = 1;
  return {{this_place(), other}, 0};
}

// The mailbox of rank 0 of two ranks, and the messages that rank 1 sends to it.
struct Mail {
  ThreadNetwork network{2};
  std::unique_ptr<Transport> sender = network.transport(1);
  std::unique_ptr<Transport> looker = network.transport(0);
  Mailbox box{network.transport(0), two_ranks(), std::make_shared<Alarm>(network.transport(0)->duplicate()),
              60};

  void send(int tag) const {
    const std::byte letter{7};
    sender->send(std::span(&letter, 1), 0, tag);
  }
  // Returns true if the letter has not begun to arrive.
  bool waits(int tag) const { return looker->waiting(1, tag).has_value(); }
  void await_arrival(int tag) {
    for (int i = 0; i < 30'000 && waits(tag); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_FALSE(waits(tag));
  }
};

class Failing final : public StubTransport {
 public:
  explicit Failing(std::atomic<int>& calls) : calls_(calls) {}
  Request send(std::span<const std::byte>, int, int) override { return {}; }
  Request receive(std::span<std::byte>, int, int) override { return {}; }
  bool done(Request&) override { return true; }
  std::optional<Envelope> waiting(int, int) override {
    ++calls_;
    throw std::runtime_error("the library fails");
  }

 private:
  std::atomic<int>& calls_;
};

}  // namespace

TEST_CASE("mail driver: letters arrive while nobody takes them, so many with each tag") {
  Mail mail;
  MailDriver driver(mail.box, {tags[0], tags[1]}, 1);
  for (const int tag : tags) {
    mail.send(tag);
    mail.await_arrival(tag);
    mail.send(tag);
  }
  for (const int tag : tags) CHECK(mail.waits(tag));
  for (const int tag : tags) {
    const auto lock = driver.hold();
    CHECK(mail.box.take_arrived(tag));
  }
  for (const int tag : tags) mail.await_arrival(tag);
}

TEST_CASE("mail driver: it leaves the mailbox to whoever holds it") {
  Mail mail;
  MailDriver driver(mail.box, {tags[0]}, 1);
  {
    const auto lock = driver.hold();
    mail.send(tags[0]);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(mail.waits(tags[0]));
  }
  mail.await_arrival(tags[0]);
}

TEST_CASE("mail driver: a library that fails ends the thread, and tells whoever uses the mailbox") {
  ThreadNetwork network(2);
  std::atomic<int> calls = 0;
  Mailbox box(std::make_unique<Failing>(calls), two_ranks(), std::make_shared<Alarm>(network.transport(0)),
              60);
  MailDriver driver(box, {tags[0]}, 1);
  const auto hold = [&] { const auto lock = driver.hold(); };
  const auto has_failed = [&] {
    try {
      hold();
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  };
  for (int i = 0; i < 30'000 && !has_failed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(calls == 1);
  CHECK_THROWS_WITH(hold(), "the library fails");
}

}  // namespace plexaura::testing::mail_driver_test

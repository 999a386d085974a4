#include "distributed/summing/mail_courier.h"

#include <chrono>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/stub_transport.h"
#include "tests/distributed/wire/thread_transport.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura::testing::mail_courier_test {

namespace {

constexpr auto training = Courier::Stream::training;
constexpr auto validation = Courier::Stream::validation;

std::vector<std::byte> parcel(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

void require(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

// Returns how two ranks end, of which the first sends. The second one has the given deadline.
std::vector<std::string> ends_of(const std::function<void(Communicator&, Courier&)>& sender,
                                 const std::function<void(Communicator&, Courier&)>& receiver,
                                 double deadline_seconds = 60) {
  ThreadNetwork network(2);
  return endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = rank == 0 ? 60 : deadline_seconds});
    MailCourier courier(ranks.mailbox("samples"));
    (rank == 0 ? sender : receiver)(ranks, courier);
    ranks.leave(0);
  });
}

const std::vector<std::string> fine{"fine", "fine"};

// The transport of rank 0 of two. Its sends never finish, and the other rank sends an empty letter with the
// tag of validation.
class Jammed final : public StubTransport {
 public:
  Request send(std::span<const std::byte>, int, int) override { return {leaving}; }
  Request receive(std::span<std::byte>, int, int) override { return {}; }
  bool done(Request& request) override { return request.handle != leaving; }
  std::optional<Envelope> waiting(int, int tag) override {
    if (tag != static_cast<int>(validation) || std::exchange(has_come_, true)) return std::nullopt;
    return Envelope{1, 0};
  }

 private:
  static constexpr std::uint64_t leaving = 1;

  bool has_come_ = false;
};

}  // namespace

TEST_CASE(
    "courier: parcels of a stream come in order, whatever the others do, until it is closed; and again") {
  const auto sender = [](Communicator&, Courier& courier) {
    for (int round = 0; round < 2; ++round) {
      for (int i = 1; i < 20; ++i) {
        courier.send(training, 1, parcel(static_cast<std::size_t>(i), i));
        if (i % 4 == 0) courier.send(validation, 1, parcel(3, i));
      }
      courier.close(training, false);
      courier.close(validation, false);
    }
  };
  const auto receiver = [](Communicator&, Courier& courier) {
    for (int round = 0; round < 2; ++round) {
      for (int i = 4; i < 20; i += 4)
        require(courier.receive(validation, "samples") == parcel(3, i), "another parcel in validation");
      require(!courier.receive(validation, "samples"), "validation was not closed");
      for (int i = 1; i < 20; ++i)
        require(courier.receive(training, "samples") == parcel(static_cast<std::size_t>(i), i),
                "another parcel in training");
      require(!courier.receive(training, "samples"), "training was not closed");
    }
  };
  CHECK(ends_of(sender, receiver) == fine);
}

TEST_CASE("courier: who closes a stream drops what was not received") {
  const auto sender = [](Communicator&, Courier& courier) {
    for (int i = 1; i < 20; ++i) courier.send(training, 1, parcel(100, i));
    courier.close(training, false);
    courier.send(training, 1, parcel(1, 42));
  };
  const auto receiver = [](Communicator&, Courier& courier) {
    require(courier.receive(training, "samples") == parcel(100, 1), "another parcel");
    courier.close(training, false);
    require(courier.receive(training, "samples") == parcel(1, 42), "a parcel of the stream before");
  };
  CHECK(ends_of(sender, receiver) == fine);
}

TEST_CASE("courier: nothing waits for a rank that takes no more parcels") {
  const auto alarm = std::make_shared<Alarm>(std::make_unique<Jammed>());
  const Topology ranks({this_place(), this_place()}, 0);
  MailCourier courier(std::make_unique<Mailbox>(std::make_unique<Jammed>(), ranks, alarm, 60));
  for (int i = 0; i < 4; ++i) courier.send(validation, 1, parcel(Mailbox::most_bytes, i));
  courier.close(validation, false);
}

TEST_CASE("courier: a parcel that does not come ends the run with its name") {
  const auto sender = [](Communicator& ranks, Courier&) { ranks.barrier("something else"); };
  const auto receiver = [](Communicator&, Courier& courier) { courier.receive(training, "samples"); };
  const auto ends = ends_of(sender, receiver, 0.5);
  CAPTURE(ends[0]);
  CAPTURE(ends[1]);
  CHECK(ends[0].starts_with("hears rank 1 "));
  CHECK(ends[1].starts_with("says rank 1 waited 0.5 s at 'samples'"));
}

TEST_CASE("courier: in validation a parcel may come later than ranks wait for each other") {
  const auto sender = [](Communicator& ranks, Courier& courier) {
    on_some_ranks(ranks, true, "validation", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2000));
      courier.send(validation, 1, parcel(1, 42));
      courier.close(validation, false);
    });
  };
  const auto receiver = [](Communicator& ranks, Courier& courier) {
    on_some_ranks(ranks, true, "validation", [&] {
      require(courier.receive(validation, "samples") == parcel(1, 42), "another parcel in validation");
      require(!courier.receive(validation, "samples"), "validation was not closed");
    });
  };
  CHECK(ends_of(sender, receiver, 1) == fine);
}

TEST_CASE("courier: in validation, too, the loss of a rank ends the wait for its parcels") {
  const auto sender = [](Communicator&, Courier&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  };
  const auto receiver = [](Communicator& ranks, Courier& courier) {
    on_some_ranks(ranks, true, "validation", [&] { courier.receive(validation, "samples"); });
  };
  const auto ends = ends_of(sender, receiver, 1);
  CAPTURE(ends[0]);
  CAPTURE(ends[1]);
  CHECK(ends[1].starts_with("says rank 0 did not come to 'validation' "));
}

}  // namespace plexaura::testing::mail_courier_test

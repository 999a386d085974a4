#include "distributed/exchange/exchange_meter.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/distributed/strategies/iris_run.h"

namespace plexaura::testing::exchange_meter_test {

namespace {

double fake_seconds = 0;
double fake_clock() { return fake_seconds; }

// One of several ranks, whose messages the test determines.
class Sender final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return ranks; }
  void sum(DType, std::byte*, std::int64_t, std::string_view) override {}
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override { return {mine}; }
  std::optional<std::int64_t> bytes_sent() const override { return sent; }

  int ranks = 2;
  std::optional<std::int64_t> sent = 1000;
};

// Bytes of the parameters of models/iris.yaml: layers 4-30-20-3.
constexpr std::int64_t iris_bytes = 833L * 4;
constexpr std::int64_t iris_steps = 15;  // in an epoch

// Returns the record of the last of two epochs, on rank 0 of two that train.
ExchangeRecord iris_exchange(std::vector<std::string> settings, int ranks = 2) {
  settings.emplace_back("training.epochs=2");
  return train_iris(ranks, std::move(settings))[0].exchange.value();
}

}  // namespace

TEST_CASE("exchange meter: counts bytes, messages and seconds, and begins anew") {
  fake_seconds = 10;
  Sender ranks;
  ExchangeMeter meter(ranks, fake_clock);
  for (int i = 0; i < 2; ++i) {
    const ExchangeMeter::Exchange exchange(meter, 300);
    *ranks.sent += 200;
    meter.add_sent(30);
    fake_seconds += 2;
  }
  *ranks.sent += 5000;  // bytes of another exchange
  fake_seconds += 7;
  const ExchangeRecord record = meter.take(false).value();
  CHECK(record.bytes == 600);
  CHECK(record.sent_bytes == 460);
  CHECK(record.seconds == 4);
  CHECK(record.gb_per_second() == doctest::Approx(150e-9));
  CHECK(record.waited_seconds == 4.0);
  CHECK_FALSE(record.overlap());
  CHECK_FALSE(meter.take(false));
  { const ExchangeMeter::Exchange exchange(meter, 5); }
  CHECK(meter.take(false)->bytes == 5);
}

TEST_CASE("exchange meter: waiting counts while an exchange is under way") {
  fake_seconds = 0;
  const Sender ranks;
  ExchangeMeter meter(ranks, fake_clock);
  {
    const ExchangeMeter::Wait begins_early(meter);
    fake_seconds += 100;
    const ExchangeMeter::Exchange exchange(meter, 1);
    fake_seconds += 1;
  }
  {
    const ExchangeMeter::Exchange exchange(meter, 1);
    fake_seconds += 5;
    const ExchangeMeter::Wait until_it_ends(meter);
    fake_seconds += 2;
  }
  const ExchangeRecord record = meter.take(true).value();
  CHECK(record.seconds == 8);
  CHECK(record.waited_seconds == 3.0);
  CHECK(record.overlap() == 0.625);
  CHECK_FALSE(meter.take(true));
}

TEST_CASE("exchange meter: messages that nobody counts are not told, and one rank exchanges nothing") {
  Sender ranks;
  ExchangeMeter meter(ranks);
  ranks.sent.reset();
  { const ExchangeMeter::Exchange exchange(meter, 1); }
  CHECK_FALSE(meter.take(false)->sent_bytes);
  ranks.ranks = 1;
  { const ExchangeMeter::Exchange exchange(meter, 1); }
  CHECK_FALSE(meter.take(false));
}

TEST_CASE("exchange meter: all strategies that exchange together tell their bytes") {
  for (const char* strategy :
       {"allreduce", "reduce-broadcast", "send-recv", "scatter-gather", "local", "elastic"}) {
    const std::string name = strategy;
    CAPTURE(name);
    const bool has_server = name == "send-recv";
    const ExchangeRecord record = iris_exchange({"distributed.strategy=" + name}, has_server ? 3 : 2);
    const bool has_weights_too = name == "scatter-gather";
    const bool is_rare = name == "local" || name == "elastic";  // exchanges at the end of an epoch
    CHECK(record.bytes == iris_bytes * (is_rare ? 1 : has_weights_too ? 2 * iris_steps : iris_steps));
    CHECK(record.seconds > 0);
    CHECK(record.waited_seconds == record.seconds);
    CHECK_FALSE(record.overlaps);
  }
  CHECK_FALSE(train_iris(3, {"distributed.strategy=async-server", "training.epochs=1"})[0].exchange);
}

TEST_CASE(
    "exchange meter: the bytes are the same with all algorithms, buckets, micro-batches and compressions") {
  for (const std::string setting :
       {"distributed.algorithm=hierarchical", "distributed.algorithm=ring", "distributed.algorithm=tree",
        "distributed.algorithm=mpi", "distributed.bucket_bytes=500", "distributed.overlap=on",
        "training.micro_batches=2", "distributed.compression=bf16", "distributed.compression=top-k",
        "distributed.compression=powersgd"}) {
    CAPTURE(setting);
    const ExchangeRecord record = iris_exchange({setting, "distributed.shared_memory=false"});
    CHECK(record.bytes == iris_bytes * iris_steps);
    CHECK(record.sent_bytes.has_value() == (setting != "distributed.algorithm=mpi"));
    CHECK(record.overlaps == (setting == "distributed.overlap=on"));
    CHECK(*record.waited_seconds <= record.seconds);
  }
}

TEST_CASE("exchange meter: compression sends less than it exchanges, and shared memory nothing") {
  const auto sent = [](const std::string& setting) {
    return *iris_exchange({setting, "distributed.bucket_bytes=500"}).sent_bytes;
  };
  const auto privately = [](const std::string& setting) {
    return *iris_exchange({setting, "distributed.shared_memory=false"}).sent_bytes;
  };
  CHECK(sent("distributed.compression=none") == 0);
  const std::int64_t plain = privately("distributed.compression=none");
  CHECK(plain >= iris_bytes * iris_steps);
  // The sent bytes also contain padding, loss and counts after the gradients, and what ranks compare before
  // each call.
  CHECK(plain < 1.2 * iris_bytes * iris_steps);
  CHECK(privately("distributed.compression=bf16") < 0.7 * static_cast<double>(plain));
  CHECK(privately("distributed.compression=top-k") < 0.3 * static_cast<double>(plain));
}

// An element takes 16 bits. Half of the elements are sent to the other host, twice.
TEST_CASE("exchange meter: what the first rank of a host sends for its host counts") {
  const std::vector<std::string> hosts{"a", "a", "b", "b"};
  for (const std::string strategy : {"allreduce", "local"}) {
    CAPTURE(strategy);
    const auto ends = train_iris(
        hosts, {"training.epochs=2", "distributed.strategy=" + strategy, "distributed.compression=bf16"});
    const std::int64_t exchanges = ends[0].exchange->bytes / iris_bytes;
    CHECK(*ends[0].exchange->sent_bytes >= exchanges * iris_bytes / 2);
    CHECK(*ends[1].exchange->sent_bytes < exchanges * iris_bytes / 4);
  }
}

}  // namespace plexaura::testing::exchange_meter_test

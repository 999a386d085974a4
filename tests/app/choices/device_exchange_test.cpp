#include "app/choices/device_exchange.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::device_exchange_test {

namespace {

RunOptions options_of(const std::string& algorithm) {
  RunOptions options;
  options.algorithm = algorithm;
  return options;
}

struct Chosen {
  bool on_device = false;
  ChoiceReport report;
  std::string algorithm;
};

// Chooses the exchange on two ranks. Returns how rank 0 ended, and its result in `chosen`.
std::string choose(const std::string& backend, const std::string& algorithm, Chosen& chosen) {
  ThreadNetwork network(2);
  return with_hosts(network, {"a", "a"}, {}, [&](Communicator& ranks) {
    RunOptions options = options_of(algorithm);
    const DeviceExchange made = decide_device_exchange(
        ranks, [&] { return open_backend(backend); }, options);
    if (ranks.rank() == 0) chosen = {made.strategy != nullptr, made.report, options.algorithm};
    ranks.barrier("the end");
  })[0];
}

bool may_sum(const RunOptions& options, int ranks = 2) {
  bool may = false;
  ThreadNetwork network(ranks);
  with_hosts(network, std::vector<std::string>(static_cast<std::size_t>(ranks), "a"), {},
             [&](Communicator& all) {
               if (all.rank() == 0) may = may_sum_on_devices(all, options);
             });
  return may;
}

}  // namespace

TEST_CASE("devices sum the gradients of allreduce alone, where the algorithm is theirs or open") {
  CHECK(may_sum(options_of("auto")));
  CHECK(may_sum(options_of("device")));
  CHECK_FALSE(may_sum(options_of("auto"), 1));
  CHECK_FALSE(may_sum(options_of("ring")));
  RunOptions options = options_of("auto");
  options.strategy.name = "reduce-broadcast";
  CHECK_FALSE(may_sum(options));
  options = options_of("auto");
  options.strategy.compression.name = "bf16";
  CHECK_FALSE(may_sum(options));
  CHECK(algorithm_of_hosts(options_of("device")) == "auto");
  CHECK(algorithm_of_hosts(options_of("ring")) == "ring");
}

TEST_CASE("devices sum where they can, and the run says so") {
  for (const char* algorithm : {"auto", "device"}) {
    Chosen chosen;
    CHECK(choose("far", algorithm, chosen) == "fine");
    CHECK(chosen.on_device);
    CHECK(chosen.algorithm == "device");
    CHECK(chosen.report.sentence == "gradients cross by the far device, each rank on a device of its own");
    CHECK(chosen.report.fields.size() == 4);
  }
}

TEST_CASE("where devices cannot sum, the run goes on or says why it does not") {
  Chosen chosen;
  CHECK(choose("cpu", "auto", chosen) == "fine");
  CHECK_FALSE(chosen.on_device);
  CHECK(chosen.algorithm == "auto");
  CHECK(chosen.report.sentence.empty());
  CHECK(choose("cpu", "device", chosen)
            .find("distributed.algorithm is 'device', but the device of rank 0 has no "
                  "library for that; take 'auto'") != std::string::npos);
}

}  // namespace plexaura::testing::device_exchange_test

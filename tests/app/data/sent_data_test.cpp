#include "app/data/sent_data.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/strategies/strategies.h"
#include "tests/distributed/wire/thread_transport.h"
#include "training/data/remote_samples.h"

namespace plexaura::testing::sent_data_test {

namespace {

std::shared_ptr<const SampleSource> source(std::int64_t size) {
  return std::make_shared<RemoteSamples>(
      size,
      std::vector<Field>{{"samples", {DType::uint8, Shape{3, 20, 24}}}, {"labels", {DType::int64, {}}}});
}

RunData some_data() {
  RunData data;
  data.train = source(1'000'000'007);
  data.validation = source(0);
  data.trained = {{"a dog", "", "12:34\n5", "käfer"}, {"x"}, {{0.1F}, {2}}, {"y z"}, {{-3}, {0.5F}}};
  data.pixels = {{0.1, 1.0 / 3, 0.25}, {1e-300}};
  data.origin = ~std::uint64_t{0};
  data.older_origin = 17;
  data.description = "1000000007 samples of 4 classes";
  data.keys = {{"data.format", "idx"}, {"data.mean", "[0.1, 0.2]"}, {"data.path", ""}};
  return data;
}

}  // namespace

TEST_CASE("data of rank 0: the others learn all but the samples") {
  constexpr int rank_count = 3;
  ThreadNetwork network(rank_count);
  std::vector<RunData> got(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    got[static_cast<std::size_t>(rank)] = share_data(ranks, rank == 0 ? some_data() : RunData{});
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  const RunData expected = some_data();
  CHECK(got[0].description == expected.description);
  for (const RunData& data : got) {
    CHECK(data.train->size() == expected.train->size());
    CHECK(data.validation->size() == 0);
    CHECK(data.train->fields() == expected.train->fields());
    CHECK(data.validation->fields() == expected.validation->fields());
    CHECK(data.trained == expected.trained);
    CHECK(data.pixels.mean == expected.pixels.mean);
    CHECK(data.pixels.stddev == expected.pixels.stddev);
    CHECK(data.origin == expected.origin);
    CHECK(data.older_origin == expected.older_origin);
    CHECK(data.keys == expected.keys);
    CHECK_THROWS_AS(data.train->read_fields(0, {}, {}), InternalError);
  }
}

TEST_CASE("data of rank 0: sent with one strategy alone") {
  for (const std::string& name : strategy_names()) CHECK(sends_data(name) == (name == "scatter-gather"));
}

}  // namespace plexaura::testing::sent_data_test

#include "training/data/stream_steps.h"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <set>
#include <tuple>

#include "tests/support/error_text.h"
#include "tests/training/point_stream.h"

namespace plexaura::testing::stream_steps_test {
namespace {

// The labels of a step are those of points: 0, 1, 2, 0, 1 ...
std::vector<std::int64_t> labels(const Step& step) {
  std::vector<std::int64_t> found;
  for (const MicroBatch& batch : step.micro_batches)
    for (const std::int64_t label : batch.fields.at(1).as<std::int64_t>()) found.push_back(label);
  return found;
}

using Labels = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a stream is divided into whole batches, epoch by epoch") {
  StreamSteps steps(point_stream({.counts = {11}}),
                    {.plan = {8, 4, 1, 2}, .first_epoch = 3, .first_step = 1});
  REQUIRE(steps.has_next());
  Step step = steps.next();
  CHECK(step.epoch == 3);
  CHECK(step.ends_epoch());
  CHECK(step.global_samples == 4);
  CHECK(step.micro_batches.size() == 2);
  CHECK(labels(step) == Labels{0, 1, 2, 0});
  step = steps.next();
  CHECK(step.epoch == 4);
  CHECK(!step.ends_epoch());
  CHECK(labels(step) == Labels{1, 2, 0, 1});
  CHECK(!steps.has_next());
  CHECK(!steps.has_next());
}

TEST_CASE("ranks take their parts of the batches of one stream, or all samples of their own streams") {
  const BatchPlan plan{10, 5, 2, 1};
  for (const auto& [rank, first, second] :
       {std::tuple{0, Labels{0, 1, 2}, Labels{2, 0, 1}}, std::tuple{1, Labels{0, 1}, Labels{2, 0}}}) {
    StreamSteps steps(point_stream({.counts = {10}}), {.plan = plan, .rank = rank});
    CHECK(labels(steps.next()) == first);
    CHECK(labels(steps.next()) == second);
    CHECK(!steps.has_next());
  }
  // The first sample of rank 1 is point 1, and each third one after it is another point of the same class.
  StreamSteps own(point_stream({.counts = {9, 5, 5}, .is_divided = true}),
                  {.plan = {12, 6, 3, 1}, .rank = 1});
  CHECK(labels(own.next()) == Labels{1, 1});
  CHECK(labels(own.next()) == Labels{1, 1});
  CHECK(!own.has_next());
}

TEST_CASE("a stream passes over the samples that were used, also if it is shuffled") {
  for (const std::int64_t buffer : {1, 5}) {
    const StreamOptions options{.plan = {40, 4}, .shuffle_buffer = buffer, .seed = 2};
    StreamSteps whole(point_stream({.counts = {22}}), options);
    whole.next();
    whole.next();
    StreamOptions rest = options;
    rest.used = 8;
    StreamSteps resumed(point_stream({.counts = {22}}), rest);
    while (whole.has_next()) {
      const Step one = whole.next();
      const Step other = resumed.next();
      CHECK(one.micro_batches[0].fields[0].to_doubles() == other.micro_batches[0].fields[0].to_doubles());
    }
    CHECK(!resumed.has_next());
    rest.used = 23;
    StreamSteps shorter(point_stream({.counts = {22}}), rest);
    CHECK(shorter.has_next());
    CHECK(contains(user_error([&] { shorter.next(); }), "fewer samples than the run has used before"));
  }
}

TEST_CASE("an error of a stream is thrown when its step is due") {
  StreamSteps steps(point_stream({.counts = {9}, .broken = 5}), {.plan = {40, 4}});
  steps.next();
  CHECK(steps.has_next());
  for (int i = 0; i < 2; ++i) CHECK(user_error([&] { steps.next(); }) == "sample 5 cannot be read");
}

TEST_CASE("an interrupted stream has no next step, and no error") {
  StreamSteps steps(point_stream({.counts = {9}, .interrupted = 5}), {.plan = {40, 4}});
  steps.next();
  CHECK(!steps.was_interrupted());
  for (int i = 0; i < 2; ++i) CHECK(!steps.has_next());
  CHECK(steps.was_interrupted());
  steps.check();
}

TEST_CASE("a shuffled stream has each sample once, near its place, in an order of its seed") {
  const auto order = [](std::int64_t buffer, std::uint64_t seed) {
    const auto source = point_stream({.counts = {30}});
    const auto reader = shuffled(source->open(0, 1), source->fields(), buffer, seed);
    std::array<float, 4> point{};
    std::int64_t label = 0;
    std::vector<std::vector<float>> found;
    const std::array<std::span<std::byte>, 2> values{std::as_writable_bytes(std::span(point)),
                                                     std::as_writable_bytes(std::span(&label, 1))};
    while (reader->next(values)) {
      found.emplace_back(point.begin(), point.end());
      found.back().push_back(static_cast<float>(label));
    }
    return found;
  };
  const auto plain = order(1, 1);
  const auto mixed = order(8, 1);
  CHECK(mixed != plain);
  CHECK(mixed == order(8, 1));
  CHECK(mixed != order(8, 2));
  CHECK(std::multiset(mixed.begin(), mixed.end()) == std::multiset(plain.begin(), plain.end()));
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(std::ranges::find(plain, mixed[i]) - plain.begin() < static_cast<std::ptrdiff_t>(i + 8));
}

}  // namespace plexaura::testing::stream_steps_test

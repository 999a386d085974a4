#include "training/data/sent_steps.h"

#include <deque>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "tests/training/data/data_support.h"
#include "training/data/remote_samples.h"

namespace plexaura::testing::sent_steps_test {

namespace {

using Parcel = std::vector<std::byte>;

// The parcels that rank 0 has sent, for ranks that run one after another.
struct Post {
  std::map<std::pair<Courier::Stream, int>, std::deque<Parcel>> parcels;
  std::set<Courier::Stream> closed;
};

class FakeCourier final : public Courier {
 public:
  FakeCourier(Post& post, int rank) : post_(post), rank_(rank) {}

  void send(Stream stream, int to, std::span<const std::byte> parcel) override {
    post_.parcels[{stream, to}].emplace_back(parcel.begin(), parcel.end());
  }
  std::optional<Parcel> receive(Stream stream, std::string_view) override {
    std::deque<Parcel>& waiting = post_.parcels[{stream, rank_}];
    if (waiting.empty() && post_.closed.contains(stream)) return std::nullopt;
    REQUIRE_FALSE(waiting.empty());
    Parcel first = std::move(waiting.front());
    waiting.pop_front();
    return first;
  }
  void close(Stream stream, bool in_error) noexcept override {
    closed_in_error = in_error;
    if (rank_ == 0) post_.closed.insert(stream);
  }

  std::optional<bool> closed_in_error;

 private:
  Post& post_;
  int rank_;
};

// The step sources of several ranks, of which the first reads.
class Ranks {
 public:
  Ranks(const std::shared_ptr<const Dataset>& dataset, LoaderOptions options) {
    const auto remote = std::make_shared<RemoteSamples>(dataset->size(), dataset->fields());
    for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
      couriers_.emplace_back(post_, static_cast<int>(options.rank));
      streams_.emplace_back(&couriers_.back(), Courier::Stream::training);
      const std::shared_ptr<const SampleSource> has =
          options.rank == 0 ? std::shared_ptr<const SampleSource>(dataset) : remote;
      steps_.push_back(make_steps(has, options, streams_.back()));
    }
  }

  StepSource& operator[](std::int64_t rank) { return *steps_.at(static_cast<std::size_t>(rank)); }
  std::size_t waiting(int rank) { return post_.parcels[{Courier::Stream::training, rank}].size(); }

 private:
  Post post_;
  std::deque<FakeCourier> couriers_;
  std::deque<SampleStream> streams_;
  std::vector<std::unique_ptr<StepSource>> steps_;
};

void check_equal(const Step& a, const Step& b) {
  CHECK(a.epoch == b.epoch);
  CHECK(a.step_in_epoch == b.step_in_epoch);
  CHECK(a.steps_in_epoch == b.steps_in_epoch);
  CHECK(a.global_samples == b.global_samples);
  REQUIRE(a.micro_batches.size() == b.micro_batches.size());
  for (std::size_t i = 0; i < a.micro_batches.size(); ++i) {
    CHECK(a.micro_batches[i].samples == b.micro_batches[i].samples);
    CHECK(a.micro_batches[i].first_sample == b.micro_batches[i].first_sample);
    CHECK(a.micro_batches[i].fields == b.micro_batches[i].fields);
  }
}

std::multiset<std::int64_t> indices_in(const Step& step) {
  std::multiset<std::int64_t> indices;
  for (const MicroBatch& batch : step.micro_batches)
    for (std::int64_t row = 0; row < batch.samples; ++row)
      indices.insert(
          static_cast<std::int64_t>(batch.fields[0].as<float>()[static_cast<std::size_t>(2 * row)]));
  return indices;
}

}  // namespace

// Steps have six samples in twelve micro-batches; the last step of an epoch has five. Three samples are
// broken.
TEST_CASE("sent steps: each rank gets what it would read itself") {
  const auto dataset = std::make_shared<CountingDataset>(23, std::vector<std::int64_t>{3, 4, 17});
  LoaderOptions options{.batch_size = 6, .ranks = 4, .micro_batches = 3, .seed = 1};
  options.on_error = OnError::skip;
  options.first_step = 2;
  for (const bool replace : {true, false})
    for (const std::int64_t workers : {0, 1, 3}) {
      options.replace = replace;
      options.workers = workers;
      Ranks sent(dataset, options);
      LoaderOptions own = options;
      std::deque<Loader> loaders;
      for (own.rank = 0; own.rank < own.ranks; ++own.rank) loaders.emplace_back(dataset, own);
      for (int step = 0; step < 9; ++step)
        for (std::int64_t rank = 0; rank < options.ranks; ++rank)
          check_equal(sent[rank].next(), loaders[static_cast<std::size_t>(rank)].next());
      CHECK_FALSE(sent[0].skipped().empty());
      CHECK(sent[1].skipped().empty());
    }
}

TEST_CASE("sent steps: in an epoch each sample is given once") {
  for (const std::int64_t ranks : {2, 3, 5, 9}) {
    Ranks sent(std::make_shared<CountingDataset>(31), {.batch_size = 7, .ranks = ranks, .seed = 5});
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::multiset<std::int64_t> seen;
      for (bool more = true; more;)
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const Step step = sent[rank].next();
          seen.merge(indices_in(step));
          more = !step.ends_epoch();
        }
      CHECK(seen.size() == 31);
      CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 31);
    }
  }
}

TEST_CASE("sent steps: those of the next step are on their way before this one is taken") {
  Ranks sent(std::make_shared<CountingDataset>(31), {.batch_size = 7, .ranks = 3});
  for (const std::size_t ahead : {1, 2, 3}) {
    sent[0].next();
    CHECK(sent.waiting(1) == ahead + 1);
    CHECK(sent.waiting(2) == ahead + 1);
  }
}

// Sample 17 is the third one of rank 1 in the third step.
TEST_CASE("sent steps: a sample that cannot be read ends all ranks in its step, and rank 0 knows why") {
  const auto broken = std::make_shared<CountingDataset>(23, std::vector<std::int64_t>{17});
  Ranks sent(broken, {.batch_size = 6, .ranks = 2, .shuffle = false});
  for (int step = 0; step < 2; ++step)
    for (const std::int64_t rank : {0, 1}) CHECK(sent[rank].next().step_in_epoch == step);
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_WITH_AS(sent[0].next(), "sample 17 is broken", UserError);
    CHECK_THROWS_WITH_AS(sent[1].next(), "rank 0 sends no more samples, because it has failed",
                         InternalError);
  }
}

TEST_CASE("sent steps: data of another size or with other fields is refused") {
  for (const std::int64_t size : {30, 60}) {
    Post post;
    FakeCourier to(post, 0);
    FakeCourier from(post, 1);
    SampleStream sending(&to, Courier::Stream::training);
    SampleStream receiving(&from, Courier::Stream::training);
    LoaderOptions options{.batch_size = 31, .ranks = 2};
    const auto sender = make_steps(std::make_shared<CountingDataset>(31), options, sending);
    options.rank = 1;
    const Shape sample = size == 30 ? Shape{2} : Shape{3};
    const auto receiver = make_steps(
        std::make_shared<RemoteSamples>(
            size == 30 ? 30 : 31,
            std::vector<Field>{{"samples", {DType::float32, sample}}, {"labels", {DType::int64, {}}}}),
        options, receiving);
    sender->next();
    CHECK(user_error([&] { receiver->next(); }) ==
          "rank 0 has sent samples that are not those this rank expects: give all ranks a data set of the "
          "same size and fields");
  }
}

TEST_CASE("a stream is closed once, and says whether it goes because of an error") {
  Post post;
  FakeCourier courier(post, 0);
  { const SampleStream stream(&courier, Courier::Stream::validation); }
  CHECK(courier.closed_in_error == false);
  CHECK(post.closed.contains(Courier::Stream::validation));
  try {
    const SampleStream stream(&courier, Courier::Stream::validation);
    throw UserError("a mistake");
  } catch (const UserError&) {
    CHECK(courier.closed_in_error == true);
  }
  courier.closed_in_error.reset();
  FakeCourier receiver(post, 1);
  {
    SampleStream stream(&receiver, Courier::Stream::validation);
    CHECK_FALSE(stream.receive("nothing"));
    CHECK_FALSE(stream.receive("nothing"));
  }
  CHECK_FALSE(receiver.closed_in_error.has_value());
}

}  // namespace plexaura::testing::sent_steps_test

#include "training/data/loader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <set>
#include <thread>

#include "backends/registry.h"
#include "core/base/error.h"
#include "tests/training/data/data_support.h"

namespace plexaura::testing::loader_test {

namespace {

// The values by which steps differ.
struct StepContent {
  std::int64_t epoch, step, global_samples;
  std::vector<std::int64_t> firsts;
  std::vector<float> samples;
  std::vector<std::int64_t> labels;

  bool operator==(const StepContent&) const = default;
};

StepContent content_of(const Step& step) {
  StepContent content{step.epoch, step.step_in_epoch, step.global_samples, {}, {}, {}};
  for (const MicroBatch& batch : step.micro_batches) {
    content.firsts.push_back(batch.first_sample);
    const auto samples = batch.fields[0].as<float>();
    content.samples.insert(content.samples.end(), samples.begin(), samples.end());
    const auto labels = batch.fields[1].as<std::int64_t>();
    content.labels.insert(content.labels.end(), labels.begin(), labels.end());
  }
  return content;
}

std::vector<StepContent> read_steps(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
                                    int count) {
  Loader loader(std::move(dataset), options);
  std::vector<StepContent> steps;
  for (int i = 0; i < count; ++i) {
    const Step step = loader.next();
    steps.push_back(content_of(step));
  }
  return steps;
}

// Sleeps for each sample, and counts the largest number that are read at the same time.
class SlowDataset final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 1000; }
  Shape sample_shape() const override { return Shape{1}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t, const SampleContext&, std::span<float> sample, std::int64_t& label) const override {
    ++reads;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    sample[0] = 0;
    label = 0;
  }

  mutable std::atomic<int> reads = 0;

 private:
  std::vector<std::string> names_{"only"};
};

// Records if another thread than the one that made it has read a sample.
class OneThreaded final : public SampleSource {
 public:
  explicit OneThreaded(std::int64_t elements) : elements_(elements) {}
  std::int64_t size() const override { return 100; }
  std::vector<Field> fields() const override { return {{"x", {DType::float32, {elements_}}}}; }
  bool in_memory() const override { return true; }
  void read_fields(std::int64_t, const SampleContext&,
                   std::span<const std::span<std::byte>> values) const override {
    std::ranges::fill(values[0], std::byte{0});
    if (std::this_thread::get_id() != maker_) elsewhere = true;
  }

  mutable std::atomic<bool> elsewhere = false;

 private:
  std::int64_t elements_;
  std::thread::id maker_ = std::this_thread::get_id();
};

struct ForeignError {};

class ThrowingDataset final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 10; }
  Shape sample_shape() const override { return Shape{1}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t, const SampleContext&, std::span<float>, std::int64_t&) const override {
    throw ForeignError{};
  }

 private:
  std::vector<std::string> names_{"only"};
};

}  // namespace

TEST_CASE("steps are the same whatever the number of workers and the depth of prefetch") {
  const auto dataset = std::make_shared<testing::CountingDataset>(101, std::vector<std::int64_t>{17, 18, 60});
  LoaderOptions options{.batch_size = 8, .micro_batches = 3, .seed = 3, .workers = 0};
  options.on_error = OnError::skip;
  const auto expected = read_steps(dataset, options, 40);
  for (const std::int64_t workers : {1, 2, 5})
    for (const std::int64_t prefetch : {1, 4}) {
      options.workers = workers;
      options.prefetch = prefetch;
      CHECK(read_steps(dataset, options, 40) == expected);
    }
}

TEST_CASE("parts that are drawn are those of the ranks that they would fall to") {
  const auto dataset = std::make_shared<testing::CountingDataset>(23, std::vector<std::int64_t>{17});
  LoaderOptions options{.batch_size = 6, .ranks = 2, .micro_batches = 2, .seed = 1, .prefetch = 1};
  options.on_error = OnError::skip;
  std::vector<std::vector<StepContent>> of_rank;
  for (options.rank = 0; options.rank < 2; ++options.rank) of_rank.push_back(read_steps(dataset, options, 8));
  for (options.workers = 0; options.workers < 3; ++options.workers) {
    options.rank = 0;
    options.parts = Parts::drawn;
    Loader loader(dataset, options);
    CHECK(loader.is_empty());
    for (const auto& [epoch, step, part] : {std::array{0, 2, 1}, std::array{0, 3, 0}, std::array{1, 3, 1}}) {
      REQUIRE(loader.has_room());
      loader.read_ahead(epoch, step, part);
      const Step read = loader.next();
      CHECK(content_of(read) ==
            of_rank.at(static_cast<std::size_t>(part)).at(static_cast<std::size_t>(4 * epoch + step)));
    }
    while (loader.has_room()) loader.read_ahead(2, 0, 0);
    CHECK_FALSE(loader.is_empty());
  }
}

TEST_CASE("parts of all ranks come one after the other, in each step") {
  const auto dataset = std::make_shared<testing::CountingDataset>(23, std::vector<std::int64_t>{17});
  LoaderOptions options{.batch_size = 6, .ranks = 3, .micro_batches = 2, .seed = 1, .prefetch = 1};
  options.on_error = OnError::skip;
  options.first_step = 3;
  std::vector<std::vector<StepContent>> of_rank;
  for (options.rank = 0; options.rank < 3; ++options.rank) of_rank.push_back(read_steps(dataset, options, 6));
  options.parts = Parts::all;
  options.rank = 0;
  for (options.workers = 0; options.workers < 3; ++options.workers) {
    const auto all = read_steps(dataset, options, 18);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == of_rank[i % 3][i / 3]);
  }
}

TEST_CASE("a rank that takes the parts of others reads in each step what these would have read") {
  const auto dataset = std::make_shared<testing::CountingDataset>(23, std::vector<std::int64_t>{17});
  LoaderOptions options{.batch_size = 6, .ranks = 4, .micro_batches = 2, .seed = 1};
  options.on_error = OnError::skip;
  std::vector<std::vector<StepContent>> of_rank;
  for (options.rank = 0; options.rank < 4; ++options.rank) of_rank.push_back(read_steps(dataset, options, 8));
  options.rank = 1;
  options.own_parts = 3;
  for (options.workers = 0; options.workers < 3; ++options.workers) {
    const auto taken = read_steps(dataset, options, 8);
    for (std::size_t step = 0; step < taken.size(); ++step) {
      StepContent together = of_rank[1][step];
      for (const std::size_t other : {std::size_t{2}, std::size_t{3}}) {
        const StepContent& more = of_rank[other][step];
        together.firsts.insert(together.firsts.end(), more.firsts.begin(), more.firsts.end());
        together.samples.insert(together.samples.end(), more.samples.begin(), more.samples.end());
        together.labels.insert(together.labels.end(), more.labels.begin(), more.labels.end());
      }
      CHECK(taken[step] == together);
    }
  }
}

TEST_CASE("the ranks together read what one rank reads, in its order") {
  const auto dataset = std::make_shared<testing::CountingDataset>(23);
  LoaderOptions options{.batch_size = 6, .micro_batches = 2, .seed = 1};
  const auto whole = read_steps(dataset, options, 8);
  options.ranks = 4;
  std::vector<std::vector<StepContent>> of_rank;
  for (options.rank = 0; options.rank < 4; ++options.rank) of_rank.push_back(read_steps(dataset, options, 8));
  for (std::size_t step = 0; step < whole.size(); ++step) {
    std::vector<float> samples;
    for (const auto& steps : of_rank) {
      CHECK(steps[step].global_samples == whole[step].global_samples);
      CHECK(steps[step].firsts.size() == 2);
      CHECK(steps[step].firsts.front() == static_cast<std::int64_t>(samples.size() / 2));
      samples.insert(samples.end(), steps[step].samples.begin(), steps[step].samples.end());
    }
    CHECK(samples == whole[step].samples);
  }
}

TEST_CASE("an epoch ends visibly, holds every sample once, and the next is in another order") {
  Loader loader(std::make_shared<testing::CountingDataset>(10), {.batch_size = 4});
  std::vector<std::vector<float>> epochs(2);
  for (auto& seen : epochs) {
    for (bool more = true; more;) {
      const Step step = loader.next();
      const auto samples = step.micro_batches.front().fields[0].as<float>();
      for (std::size_t i = 0; i < samples.size(); i += 2) seen.push_back(samples[i]);
      more = !step.ends_epoch();
    }
    CHECK(std::set<float>(seen.begin(), seen.end()).size() == 10);
    CHECK(seen.size() == 10);
  }
  CHECK(epochs[0] != epochs[1]);
}

TEST_CASE("a resumed loader goes on where the first would have") {
  const auto dataset = std::make_shared<testing::CountingDataset>(10);
  LoaderOptions options{.batch_size = 4, .seed = 9};
  auto expected = read_steps(dataset, options, 7);
  expected.erase(expected.begin(), expected.begin() + 4);
  options.first_epoch = 1;
  options.first_step = 1;
  CHECK(read_steps(dataset, options, 3) == expected);
  options.first_step = 3;
  options.first_epoch = 0;
  CHECK(read_steps(dataset, options, 1).front().epoch == 1);
}

TEST_CASE("weighted samples are the same whatever the workers and ranks are, and after a resume") {
  const auto weights = std::make_shared<const std::vector<double>>(std::vector<double>{0, 1, 1, 5, 0, 1, 1});
  const auto indices = [&](LoaderOptions options, int steps) {
    options.batch_size = 3;
    options.weights = weights;
    Loader loader(std::make_shared<CountingDataset>(7), options);
    std::vector<float> found;
    for (int step = 0; step < steps; ++step)
      for (const MicroBatch& batch : loader.next().micro_batches)
        for (std::int64_t i = 0; i < batch.samples; ++i)
          found.push_back(batch.fields[0].as<float>()[static_cast<std::size_t>(2 * i)]);
    return found;
  };
  const std::vector<float> all = indices({.seed = 2, .workers = 0}, 6);
  CHECK(all.size() == 14);
  CHECK(std::ranges::count(all, 0) + std::ranges::count(all, 4) == 0);
  CHECK(indices({.seed = 2, .workers = 3}, 6) == all);
  const std::vector<float> rest = indices({.seed = 2, .first_step = 2}, 4);
  CHECK(std::equal(rest.begin(), rest.end(), all.begin() + 6));
  const std::vector<float> second = indices({.ranks = 2, .rank = 1, .seed = 2}, 1);
  CHECK(second == std::vector<float>{all[2]});
  CHECK(user_error([] {
          Loader(std::make_shared<CountingDataset>(6),
                 {.weights = std::make_shared<const std::vector<double>>(std::vector<double>{1, 1})});
        }) == "the loader's number of weights is 2; it must be that of the samples, 6");
}

TEST_CASE("a rank without samples has empty micro-batches") {
  Loader loader(std::make_shared<testing::CountingDataset>(5),
                {.batch_size = 2, .ranks = 3, .rank = 2, .micro_batches = 2});
  const Step step = loader.next();
  REQUIRE(step.micro_batches.size() == 2);
  CHECK(step.global_samples == 2);
  CHECK(step.micro_batches[0].fields[0].shape() == Shape{0, 2});
  CHECK(step.micro_batches[1].fields[1].shape() == Shape{0});
}

TEST_CASE("a sample that cannot be read ends the run with its own error, every time") {
  const auto dataset = std::make_shared<testing::CountingDataset>(20, std::vector<std::int64_t>{5, 7});
  for (const std::int64_t workers : {0, 3}) {
    Loader loader(dataset, {.batch_size = 5, .shuffle = false, .workers = workers});
    CHECK_NOTHROW(loader.next());
    CHECK(user_error([&] { loader.next(); }) == "sample 5 is broken");
    CHECK(user_error([&] { loader.next(); }) == "sample 5 is broken");
  }
}

TEST_CASE("what a dataset throws arrives as it was thrown") {
  for (const auto on_error : {OnError::fail, OnError::skip}) {
    Loader loader(std::make_shared<ThrowingDataset>(), {.workers = 2, .on_error = on_error});
    CHECK_THROWS_AS(loader.next(), ForeignError);
  }
}

TEST_CASE("a skipped sample is replaced by the next of the same rank, counted and named once") {
  const auto dataset = std::make_shared<testing::CountingDataset>(8, std::vector<std::int64_t>{1, 2, 7});
  LoaderOptions options{
      .batch_size = 4, .ranks = 2, .shuffle = false, .workers = 2, .on_error = OnError::skip};
  Loader first(dataset, options);  // this rank has 0 1 | 4 5
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(content_of(first.next()).samples == std::vector<float>{0, 1.0F * epoch, 4, 1.0F * epoch});
    CHECK(content_of(first.next()).samples == std::vector<float>{4, 1.0F * epoch, 5, 1.0F * epoch});
  }
  CHECK(first.skipped() == std::map<std::int64_t, std::string>{{1, "sample 1 is broken"}});

  options.rank = 1;  // this rank has 2 3 | 6 7
  Loader second(dataset, options);
  CHECK(content_of(second.next()).samples == std::vector<float>{3, 0, 3, 0});
  CHECK(content_of(second.next()).samples == std::vector<float>{6, 0, 3, 0});
  CHECK(second.skipped().size() == 2);
}

TEST_CASE("where nothing is replaced a sample that cannot be read leaves no gap") {
  const auto dataset = std::make_shared<testing::CountingDataset>(8, std::vector<std::int64_t>{1, 2, 6, 7});
  for (const std::int64_t workers : {0, 2}) {
    Loader loader(dataset, {.batch_size = 4,
                            .micro_batches = 2,
                            .shuffle = false,
                            .workers = workers,
                            .on_error = OnError::skip,
                            .replace = false});
    const Step first = loader.next();
    CHECK(content_of(first).samples == std::vector<float>{0, 0, 3, 0});
    CHECK(content_of(first).labels == std::vector<std::int64_t>{0, 0});
    CHECK(first.micro_batches[0].samples == 1);
    CHECK(first.micro_batches[1].samples == 1);
    CHECK(first.global_samples == 4);
    const Step second = loader.next();
    CHECK(content_of(second).samples == std::vector<float>{4, 0, 5, 0});
    CHECK(second.micro_batches[1].samples == 0);
    CHECK(loader.skipped().size() == 4);
  }
}

TEST_CASE("with no readable sample at all, skipping ends in an error that shows the first") {
  Loader loader(std::make_shared<testing::CountingDataset>(2, std::vector<std::int64_t>{0, 1}),
                {.workers = 1, .on_error = OnError::skip});
  CHECK(user_error([&] { loader.next(); }).find("sample 0 is broken") != std::string::npos);
}

TEST_CASE("no more is read ahead than prefetch says") {
  const auto dataset = std::make_shared<SlowDataset>();
  Loader loader(dataset, {.batch_size = 2, .workers = 2, .prefetch = 2});
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(dataset->reads <= 6);
}

TEST_CASE("destruction does not wait for the steps ahead") {
  const auto dataset = std::make_shared<SlowDataset>();
  { const Loader loader(dataset, {.batch_size = 1000, .workers = 2}); }
  CHECK(dataset->reads < 1000);  // one whole step would take a second
}

TEST_CASE("small samples in memory are read by the calling thread, large ones ahead of it") {
  const auto is_read_elsewhere = [](std::int64_t elements, std::int64_t ranks) {
    const auto source = std::make_shared<OneThreaded>(elements);
    Loader loader(source, {.batch_size = 16, .ranks = ranks, .workers = 2});
    for (int i = 0; i < 20; ++i) loader.next();
    return source->elsewhere.load();
  };
  CHECK(!is_read_elsewhere(1024, 1));  // 64 KiB a step
  CHECK(is_read_elsewhere(1025, 1));
  CHECK(!is_read_elsewhere(2048, 2));
}

TEST_CASE("time spent waiting is counted") {
  Loader loader(std::make_shared<SlowDataset>(), {.batch_size = 10, .workers = 0});
  loader.next();
  CHECK(loader.stall_seconds() > 0);
}

TEST_CASE("steps that are gone lend their memory to later ones") {
  const auto backend = open_backend("cpu");
  Loader loader(
      std::make_shared<testing::CountingDataset>(64),
      {.batch_size = 8, .workers = 1, .prefetch = 1, .memory = std::make_shared<FeedMemory>(*backend, 0)});
  std::set<const std::byte*> memory;
  for (int i = 0; i < 100; ++i) {
    const Step step = loader.next();
    memory.insert(step.micro_batches.front().fields[0].data());
  }
  CHECK(memory.size() <= 4);
}

TEST_CASE("impossible options are refused in a sentence") {
  const auto dataset = std::make_shared<testing::CountingDataset>(10);
  const auto error = [&](const LoaderOptions& options) {
    return user_error([&] { const Loader loader(dataset, options); });
  };
  CHECK(error({.batch_size = 0}).find("batch is 0") != std::string::npos);
  CHECK(error({.ranks = 2, .rank = 2}).find("from 0 to 1") != std::string::npos);
  CHECK(error({.ranks = 4, .rank = 2, .own_parts = 3}).find("parts is 3; it must be from 1 to 2") !=
        std::string::npos);
  CHECK(error({.workers = -1}).find("workers is -1") != std::string::npos);
  CHECK(error({.prefetch = 0}).find("prefetch is 0") != std::string::npos);
  CHECK(error({.prefetch = 1025}).find("prefetch is 1025; it must be from 1 to 1024") != std::string::npos);
  CHECK(error({.batch_size = 5, .first_step = 3}).find("from 0 to 2") != std::string::npos);
  CHECK_THROWS_AS(Loader(nullptr, {}), UserError);
  CHECK_THROWS_AS(Loader(std::make_shared<testing::CountingDataset>(0), {}), UserError);
}

}  // namespace plexaura::testing::loader_test

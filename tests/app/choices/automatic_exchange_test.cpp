#include "app/choices/automatic_exchange.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::automatic_exchange_test {

namespace {

const std::vector<std::string> two_hosts{"a", "b"};

// Uses a temporary folder as the user's cache.
class Cache {
 public:
  Cache() {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~Cache() { old_ ? ::setenv("XDG_CACHE_HOME", old_->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME"); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  std::filesystem::path file() const { return folder_ / "plexaura/exchanges"; }

 private:
  TemporaryFolder folder_;
  std::optional<std::string> old_;
};

// Returns the options of a configuration that does not set the size of buckets.
RunOptions open_options() {
  RunOptions options;
  options.types = ArenaTypes::all(DType::float32);
  options.algorithm = "auto";
  options.finds_buckets = true;
  return options;
}

std::vector<ParameterSpec> parameters_of(std::int64_t elements) {
  std::vector<ParameterSpec> specs;
  for (const char* name : {"first", "second", "third"})
    specs.push_back({.name = name,
                     .type = {DType::float32, {elements}},
                     .role = ParameterRole::trainable,
                     .initialiser = {}});
  return specs;
}

struct Chosen {
  ChoiceReport report;
  RunOptions options;
};

// Returns the result of each rank. The link is so slow that small buckets pay off.
std::vector<Chosen> choose(const std::vector<std::string>& hosts, const RunOptions& options,
                           std::int64_t elements = 100'000) {
  std::vector<Chosen> made(hosts.size());
  ThreadNetwork network(static_cast<int>(hosts.size()));
  network.slow_down(1e-6);
  for (const std::string& end : with_hosts(network, hosts, {}, [&](Communicator& ranks) {
         Chosen& mine = made[static_cast<std::size_t>(ranks.rank())];
         mine.options = options;
         ranks.choose_algorithm(options.algorithm);
         mine.report = decide_exchange(ranks, parameters_of(elements), mine.options);
       }))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  return made;
}

bool stays(const RunOptions& options, std::int64_t elements = 100'000) {
  for (const Chosen& chosen : choose(two_hosts, options, elements))
    if (!chosen.report.sentence.empty() || !chosen.report.fields.empty() ||
        chosen.options.trainer.bucket_bytes != options.trainer.bucket_bytes ||
        chosen.options.algorithm != options.algorithm)
      return false;
  return true;
}

}  // namespace

TEST_CASE("exchange: what was measured is reported, and taken by all ranks from the cache the next time") {
  const Cache cache;
  const std::vector<Chosen> first = choose(two_hosts, open_options());
  const Chosen& mine = first[0];
  CHECK(mine.report.sentence.starts_with("gradients cross in buckets of "));
  CHECK(mine.report.sentence.ends_with("; this is kept in '" + cache.file().string() + "'"));
  CHECK(mine.options.trainer.bucket_bytes < 25 << 20);
  const std::vector<Chosen> second = choose(two_hosts, open_options());
  for (const Chosen& chosen : {first[1], second[0], second[1]}) {
    CHECK(chosen.options.trainer.bucket_bytes == mine.options.trainer.bucket_bytes);
    CHECK(chosen.options.algorithm == mine.options.algorithm);
  }
  CHECK(second[0].report.sentence.ends_with(", as measured before"));
  CHECK(second[0].report.fields.size() == 4);
  CHECK(std::get<bool>(second[0].report.fields[3].value) == false);
}

TEST_CASE("exchange: other ranks, other gradients and what else matters are measured by themselves") {
  const Cache cache;
  const auto is_known = [](const std::vector<Chosen>& chosen) {
    return chosen[0].report.sentence.ends_with(", as measured before");
  };
  choose(two_hosts, open_options());
  CHECK(is_known(choose(two_hosts, open_options())));
  CHECK(!is_known(choose({"a", "b", "b"}, open_options())));
  CHECK(!is_known(choose({"a", "a", "b"}, open_options())));
  CHECK(!is_known(choose(two_hosts, open_options(), 100'001)));
  RunOptions other = open_options();
  other.strategy.overlap = Overlap::off;
  CHECK(!is_known(choose(two_hosts, other)));
  other = open_options();
  other.tuning = Tuning::measure;
  CHECK(!is_known(choose(two_hosts, other)));
  CHECK(is_known(choose(two_hosts, open_options())));
}

TEST_CASE(
    "exchange: what the cache holds is measured again where it is none of what there is to choose from") {
  const Cache cache;
  choose(two_hosts, open_options());
  std::string text = read_text(cache.file());
  text = text.substr(0, text.rfind('\n', text.size() - 2) + 18) + "12345 ring\n";
  write_text(cache.file(), text);
  CHECK(!choose(two_hosts, open_options())[0].report.sentence.ends_with(", as measured before"));
}

TEST_CASE("exchange: nothing is measured where there is nothing to choose") {
  const Cache cache;
  CHECK(choose({"a"}, open_options())[0].report.sentence.empty());
  CHECK(stays(open_options(), 80'000));  // less than a megabyte
  RunOptions options = open_options();
  options.tuning = Tuning::off;
  CHECK(stays(options));
  options = open_options();
  options.algorithm = "hierarchical";
  options.finds_buckets = false;
  CHECK(stays(options));
  for (const char* strategy : {"local", "reduce-broadcast"}) {
    options = open_options();
    options.strategy.name = strategy;
    CHECK(stays(options));
  }
  options = open_options();
  options.strategy.compression.name = "bf16";
  CHECK(stays(options));
  CHECK(!std::filesystem::exists(cache.file()));
}

TEST_CASE("exchange: buckets stay as they are where they have a share in the bits") {
  const Cache cache;
  RunOptions options = open_options();
  options.algorithm = "ring";
  CHECK(stays(options));
  options.algorithm = "hierarchical";
  options.trainer.optimizer.max_gradient_norm = 1;
  CHECK(stays(options));
  options.trainer.optimizer.max_gradient_norm = 0;
  options.types = ArenaTypes::mixed(DType::float16);
  CHECK(stays(options));
  options.types = ArenaTypes::mixed(DType::bfloat16);
  CHECK(!stays(options));
}

TEST_CASE("exchange: a key that is given stays, and the other is looked for") {
  const Cache cache;
  RunOptions options = open_options();
  options.finds_buckets = false;
  options.trainer.bucket_bytes = 5;
  const Chosen by_algorithm = choose(two_hosts, options)[0];
  CHECK(!by_algorithm.report.sentence.empty());
  CHECK(by_algorithm.options.trainer.bucket_bytes == 5);
  options.trainer.parts_may_move = true;  // a tree cannot add parts of moved ranks
  CHECK(stays(options));
  options = open_options();
  options.algorithm = "tree";
  const Chosen by_size = choose(two_hosts, options)[0];
  CHECK(by_size.options.algorithm == "tree");
  CHECK(by_size.options.trainer.bucket_bytes < 25 << 20);
}

}  // namespace plexaura::testing::automatic_exchange_test

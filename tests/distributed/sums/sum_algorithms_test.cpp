#include "distributed/sums/sum_algorithms.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <random>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::sum_algorithms_test {
namespace {

// The number of elements of a call, and how a window of this size is cut into calls.
struct Size {
  std::int64_t count;
  std::int64_t bucket;
};

void expect(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

template <class T>
bool same_bits(const void* data, const std::vector<T>& wanted) {
  return wanted.empty() || std::memcmp(data, wanted.data(), wanted.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<T> sum_in_halves(Communicator& ranks, std::int64_t count) {
  std::vector<T> values = summands<T>(ranks.rank(), count);
  auto* const data = reinterpret_cast<std::byte*>(values.data());
  ranks.reduce_scatter(dtype_of<T>, data, count, "values");
  const Part mine = part_of(count, dtype_of<T>, ranks.rank(), ranks.size());
  std::fill_n(values.begin(), mine.first, T{});  // the parts of other ranks may have any values
  std::fill(values.begin() + mine.first + mine.count, values.end(), T{});
  ranks.all_gather(dtype_of<T>, data, count, "values");
  return values;
}

// Checks every way to sum that a communicator has.
template <class T>
void expect_sums(Communicator& ranks, const Size& size, const std::vector<T>& wanted) {
  std::vector<T> values = summands<T>(ranks.rank(), size.count);
  ranks.sum(dtype_of<T>, reinterpret_cast<std::byte*>(values.data()), size.count, "values");
  expect(same_bits(values.data(), wanted), "a sum is wrong");
  expect(same_bits(sum_in_halves<T>(ranks, size.count).data(), wanted), "a sum in halves is wrong");
  SharedWindow window = ranks.allocate_shared(static_cast<std::size_t>(size.count) * sizeof(T), "a window");
  const std::vector<T> mine = summands<T>(ranks.rank(), size.count);
  if (!mine.empty()) std::memcpy(window.data(), mine.data(), mine.size() * sizeof(T));
  for (std::int64_t first = 0; first < size.count; first += size.bucket)
    ranks.sum_window(window, static_cast<std::size_t>(first) * sizeof(T), dtype_of<T>,
                     std::min(size.bucket, size.count - first), "a window");
  expect(same_bits(window.data(), wanted), "a sum in windows is wrong");
}

const std::vector<std::string> keeping{"auto", "window", "hierarchical", "tree"};

template <class T>
void compare_all(const std::vector<std::string>& hosts, const CommunicatorOptions& options,
                 const Size& size) {
  const std::vector<T> wanted = sums<T>(static_cast<int>(hosts.size()), size.count);
  ThreadNetwork network(static_cast<int>(hosts.size()));
  const auto ends = with_hosts(network, hosts, options, [&](Communicator& ranks) {
    const bool all_share = options.shared_memory && ranks.place().count == 1;
    for (const std::string& name : keeping) {
      if (name == "window" && !all_share) continue;
      ranks.choose_algorithm(name);
      expect(ranks.keeps_order(), "it keeps the order");
      expect_sums(ranks, size, wanted);
    }
  });
  CAPTURE(hosts);
  CAPTURE(size.count);
  CAPTURE(size.bucket);
  CHECK(ends == std::vector<std::string>(hosts.size(), "fine"));
}

}  // namespace

TEST_CASE("algorithms that keep the order give the same bits, whatever ranks, hosts, sizes and buckets") {
  std::mt19937 random(7);
  for (int trial = 0; trial < (sanitized ? 12 : 36); ++trial) {
    std::vector<std::string> hosts(2 + random() % 6);
    const auto host_count = 1 + random() % 3;
    for (std::string& host : hosts) host = std::string(1, static_cast<char>('a' + random() % host_count));
    Size size{};
    size.count = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 20 : 20'000));
    size.bucket = 1 + size.count / static_cast<std::int64_t>(1 + random() % 4);
    const CommunicatorOptions options{.shared_memory = random() % 4 > 0};
    if (trial % 3 == 0) compare_all<float>(hosts, options, size);
    if (trial % 3 == 1) compare_all<double>(hosts, options, size);
    if (trial % 3 == 2) compare_all<std::int64_t>(hosts, options, size);
  }
}

TEST_CASE("algorithms: ranks that bring blocks of shards get the bits of as many ranks as there are shards") {
  constexpr std::int64_t count = 5000;
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a", "a", "a"}, {"a", "b", "a"}, {"b", "a"}, {"a", "a", "b", "b"}})
    for (const int shards : {4, 5, 7}) {
      const std::vector<float> wanted = sums<float>(shards, count);
      ThreadNetwork network(static_cast<int>(hosts.size()));
      const auto ends = with_hosts(network, hosts, {}, [&](Communicator& ranks) {
        const ShardRange own = divide_shards(shards, ranks.size())[static_cast<std::size_t>(ranks.rank())];
        for (const char* const name : {"auto", "hierarchical"}) {
          ranks.choose_algorithm(name);
          ranks.bring_shards(shards);
          SharedWindow window = ranks.allocate_shared(count * sizeof(float), "a window");
          for (std::int64_t i = 0; i < count; ++i) {
            const auto value = sum_of<float>(own.first, own.last, i);
            std::memcpy(window.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
          }
          std::vector<std::byte> values(window.data(), window.data() + window.bytes());
          ranks.sum(DType::float32, values.data(), count, "values");
          expect(same_bits(values.data(), wanted), "a sum is wrong");
          ranks.sum_window(window, 0, DType::float32, count, "a window");
          expect(same_bits(window.data(), wanted), "a sum in windows is wrong");
        }
        ranks.choose_algorithm("tree");
        try {
          ranks.bring_shards(shards);
        } catch (const UserError&) {
          return;
        }
        expect(false, "a tree of ranks cannot add shards");
      });
      CHECK(ends == std::vector<std::string>(hosts.size(), "fine"));
    }
}

TEST_CASE("algorithms: nothing, one element, fewer elements than ranks, and many segments") {
  const std::vector<std::string> hosts{"a", "a", "b", "c", "a"};
  for (const std::int64_t count : {0, 1, 2}) compare_all<double>(hosts, {}, {count, 1});
  compare_all<float>({"a", "a", "b", "b"}, {}, {600'001, 350'000});
  if (sanitized) return;
  compare_all<float>({"a", "b"}, {}, {1'600'001, 1'600'001});
  compare_all<float>({"a", "a", "a"}, {}, {400'001, 400'001});
}

TEST_CASE("algorithms that do not keep the order say so, and sum all the same") {
  const std::vector<std::string> hosts{"a", "b", "a", "b"};
  for (const std::int64_t count : {0, 1, 3, 1000, 700'001}) {
    const std::vector<std::int64_t> whole = sums<std::int64_t>(4, count);
    ThreadNetwork network(4);
    const auto ends = with_hosts(network, hosts, {}, [&](Communicator& ranks) {
      for (const char* const name : {"ring", "mpi"}) {
        ranks.choose_algorithm(name);
        expect(!ranks.keeps_order(), "it does not keep the order");
        expect_sums(ranks, {count, count / 2 + 1}, whole);
      }
    });
    CHECK(ends == std::vector<std::string>(4, "fine"));
  }
}

TEST_CASE("algorithms: a choice that cannot work is refused on all ranks by one sentence, and all go on") {
  struct Case {
    std::string name;
    bool shared;
    std::vector<std::string> hosts;
    std::string text;
  };
  const std::string rule = "'window' adds in memory that all ranks share; take 'auto' or 'hierarchical'";
  const std::vector<Case> cases{
      {"rings",
       true,
       {"a", "a", "a"},
       "there is no algorithm 'rings' for sums over ranks; known are auto, window, hierarchical, ring, tree, "
       "mpi; did "
       "you mean 'ring'?"},
      {"window",
       true,
       {"a", "b", "a"},
       "distributed.algorithm is 'window', but the ranks run on 2 hosts (a and b among them): " + rule},
      {"window",
       false,
       {"a", "a", "a"},
       "distributed.algorithm is 'window', but the ranks do not share memory: " + rule}};
  for (const Case& c : cases) {
    ThreadNetwork network(3);
    const auto ends = with_hosts(network, c.hosts, {.shared_memory = c.shared}, [&](Communicator& ranks) {
      std::exception_ptr refused;
      try {
        ranks.choose_algorithm(c.name);
      } catch (const UserError&) {
        refused = std::current_exception();
      }
      std::int64_t sum = 1;
      ranks.sum(DType::int64, reinterpret_cast<std::byte*>(&sum), 1, "how many we are");
      expect(sum == 3, "the sum of those that go on is wrong");
      ranks.leave(0);
      if (refused) std::rethrow_exception(refused);
    });
    CHECK(ends[0] == "says " + c.text);
    for (const int other : {1, 2}) CHECK(ends[static_cast<std::size_t>(other)] == "hears rank 0: " + c.text);
  }
}

TEST_CASE("algorithms: ranks that choose unlike ones are told so") {
  ThreadNetwork network(2);
  const auto ends = with_hosts(network, {"a", "b"}, {}, [](Communicator& ranks) {
    ranks.choose_algorithm(ranks.rank() == 0 ? "ring" : "tree");
  });
  for (const std::string& end : ends) {
    CAPTURE(end);
    CHECK(end.find("the choice of the algorithm 'ring' for sums") != std::string::npos);
  }
}

TEST_CASE("algorithms: duplicates and parts keep the choice, and a single rank has none") {
  ThreadNetwork network(3);
  const auto ends = with_hosts(network, {"a", "a", "b"}, {}, [&](Communicator& ranks) {
    expect(ranks.keeps_order(), "at first");
    ranks.choose_algorithm("ring");
    expect(!ranks.duplicate("another")->keeps_order(), "a duplicate has the choice");
    const auto part = ranks.split(ranks.rank() / 2, "parts");
    expect(part->keeps_order() == (part->size() == 1), "a part has the choice");
    part->choose_algorithm("window");
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
}

}  // namespace plexaura::testing::sum_algorithms_test

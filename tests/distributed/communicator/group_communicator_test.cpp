#include "distributed/communicator/group_communicator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <map>
#include <numeric>

#include "core/exchange/rank_lost.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::group_communicator_test {
namespace {

constexpr int rank_count = 3;

std::vector<std::string> with_communicators(const CommunicatorOptions& options,
                                            const std::function<void(GroupCommunicator&)>& body) {
  ThreadNetwork network(rank_count);
  return endings(rank_count, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), options);
    body(ranks);
    ranks.leave(0);
  });
}

void sum_ones(Communicator& ranks, const char* what) {
  std::vector<float> values(1000, 1);
  ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), 1000, what);
  if (values != std::vector<float>(1000, rank_count)) throw InternalError("the sum is wrong");
}

}  // namespace

TEST_CASE("communicator: sums, windows, broadcasts and texts, with shared memory and without") {
  for (const bool shared : {true, false}) {
    const auto ends = with_communicators({.shared_memory = shared}, [&](GroupCommunicator& ranks) {
      sum_ones(ranks, "ones");
      SharedWindow window = ranks.allocate_shared(4000, "a window");
      if (window.shared() != shared) throw InternalError("the window is of the other kind");
      auto* const values = reinterpret_cast<float*>(window.data());
      std::iota(values, values + 1000, static_cast<float>(ranks.rank()));
      ranks.sum_window(window, 400, DType::float32, 800, "a window");
      if (values[99] != static_cast<float>(99 + ranks.rank()) || values[100] != 303 || values[899] != 2700)
        throw InternalError("the sum in windows is wrong");
      int number = ranks.rank();
      ranks.broadcast(reinterpret_cast<std::byte*>(&number), sizeof number, 2, "a number");
      if (number != 2) throw InternalError("the broadcast is wrong");
      if (ranks.gather_all(std::string(static_cast<std::size_t>(ranks.rank()), 'x'), "texts") !=
          std::vector<std::string>{"", "x", "xx"})
        throw InternalError("the texts are wrong");
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

TEST_CASE("communicator: a sum in two halves leaves each rank its part, and brings all parts to all") {
  constexpr std::int64_t element_count = 700'001;  // more than fits into a staging area
  for (const bool shared : {true, false}) {
    const auto ends = with_communicators({.shared_memory = shared}, [&](GroupCommunicator& ranks) {
      std::vector<std::int64_t> values(element_count, 100L * ranks.rank());
      auto* const data = reinterpret_cast<std::byte*>(values.data());
      ranks.reduce_scatter(DType::int64, data, element_count, "values");
      const Part mine = part_of(element_count, DType::int64, ranks.rank(), rank_count);
      for (std::int64_t i = 0; i < mine.count; ++i) {
        std::int64_t& value = values[static_cast<std::size_t>(mine.first + i)];
        if (value != 300) throw InternalError("a part is wrong");
        value += ranks.rank();
      }
      ranks.all_gather(DType::int64, data, element_count, "values");
      for (int rank = 0; rank < rank_count; ++rank) {
        const Part part = part_of(element_count, DType::int64, rank, rank_count);
        for (std::int64_t i = part.first; i < part.first + part.count; ++i)
          if (values[static_cast<std::size_t>(i)] != 300 + rank) throw InternalError("a part is missing");
      }
      CHECK_THROWS_AS(ranks.reduce_scatter(DType::uint8, data, 1, "bytes"), UserError);
      ranks.all_gather(DType::uint8, data, 7, "bytes");
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

// The data is longer than one message. The calls for rank 1 and rank 2 follow each other without a collective
// call between them.
TEST_CASE("communicator: what ranks bring to rank 0 comes there alone, and the others send none of it") {
  constexpr std::size_t bytes = 5 << 20;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.shared_memory = false});
    for (int from = 1; from < rank_count; ++from) {
      std::vector<std::byte> data(rank == 0 || rank == from ? bytes : 0, std::byte(rank));
      ranks.bring_to_0(data.data(), bytes, from, "a state");
      if (rank == 0) CHECK(data == std::vector<std::byte>(bytes, std::byte(from)));
    }
    ranks.barrier("the end");
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  for (int from = 0; from < rank_count; ++from)
    for (int to = 0; to < rank_count; ++to) {
      CAPTURE(from);
      CAPTURE(to);
      const bool brings = from > 0 && to == 0;
      CHECK(network.bytes_sent(from, to) >= (brings ? bytes : 0));
      CHECK(network.bytes_sent(from, to) < (brings ? bytes : 0) + (1 << 16));
    }
}

TEST_CASE("communicator: blocks go from each rank to each other one") {
  for (const std::size_t block : {std::size_t{0}, std::size_t{5}, std::size_t{2'500'000}}) {
    CAPTURE(block);
    const auto ends = with_communicators({}, [&](GroupCommunicator& ranks) {
      const auto fill = [](std::span<std::byte> bytes, int from, int to) {
        for (std::size_t i = 0; i < bytes.size(); i += 9999)
          std::ranges::fill(bytes.subspan(i, std::min<std::size_t>(9999, bytes.size() - i)),
                            static_cast<std::byte>(50 * from + 17 * to + static_cast<int>(i % 101)));
      };
      std::vector<std::byte> blocks(block * rank_count);
      std::vector<std::byte> expected(blocks.size());
      for (int other = 0; other < rank_count; ++other) {
        const std::size_t begin = static_cast<std::size_t>(other) * block;
        fill(std::span(blocks).subspan(begin, block), ranks.rank(), other);
        fill(std::span(expected).subspan(begin, block), other, ranks.rank());
      }
      std::vector<std::byte> received(blocks.size());
      ranks.all_to_all(blocks, received, "blocks");
      if (received != expected) throw InternalError("a block is wrong");
      received.push_back({});
      CHECK_THROWS_WITH_AS(ranks.all_to_all(blocks, received, "blocks"),
                           doctest::Contains("which is not one block for each of 3 ranks"), UserError);
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

// The array has 4,000 bytes. Its three parts have 1,344, 1,344 and 1,312 bytes. Before each call rank 0 also
// sends one byte to each other rank.
TEST_CASE("communicator: counts the bytes of the messages that it sends, and of no other communicator") {
  constexpr std::int64_t answers = rank_count - 1;
  const std::map<std::string, std::int64_t> sums{
      {"tree", 2 * 4000}, {"hierarchical", 1344 + 1312 + 2 * 1344}, {"ring", 1312 + 1344 + 1344 + 1312}};
  for (const auto& [algorithm, bytes] : sums) {
    CAPTURE(algorithm);
    const CommunicatorOptions options{.shared_memory = false, .algorithm = algorithm};
    const auto ends = with_communicators(options, [&](GroupCommunicator& ranks) {
      const auto other = ranks.duplicate("another one");
      const std::int64_t before = ranks.bytes_sent().value();
      sum_ones(*other, "ones");
      if (ranks.bytes_sent() != before) throw InternalError("what another one sends is counted");
      sum_ones(ranks, "ones");
      const std::int64_t sent = *ranks.bytes_sent() - before;
      if (ranks.rank() == 0 && sent != bytes + answers)
        throw InternalError(std::to_string(sent) + " bytes are counted");
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

TEST_CASE(
    "communicator: counts messages of its users, none in shared memory, and not what the library sends") {
  const auto ends = with_communicators({}, [&](GroupCommunicator& ranks) {
    const std::int64_t before = ranks.bytes_sent().value();
    sum_ones(ranks, "ones");
    if (ranks.bytes_sent() != before) throw InternalError("a sum in shared memory is counted");
    std::vector<std::byte> data(300);
    if (ranks.rank() == 0) ranks.send({1, 0}, data, "a message");
    if (ranks.rank() == 1) ranks.receive({0, 0}, data, "a message");
    if (*ranks.bytes_sent() - before != (ranks.rank() == 0 ? 300 : 0))
      throw InternalError("messages are counted wrong");
    ranks.choose_algorithm("mpi");
    if (ranks.bytes_sent()) throw InternalError("what the library sends is counted");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("communicator: a window of shared memory is summed by a communicator that has none") {
  ThreadNetwork network(rank_count);
  const auto ends = with_communicators({}, [&](GroupCommunicator& ranks) {
    SharedWindow window = ranks.allocate_shared(4000, "a window");
    GroupCommunicator others(network.transport(ranks.rank()), {.shared_memory = false});
    auto* const values = reinterpret_cast<float*>(window.data());
    std::fill_n(values, 1000, 1.0F);
    others.sum_window(window, 0, DType::float32, 1000, "a window");
    if (std::count(values, values + 1000, 3.0F) != 1000) throw InternalError("the sum is wrong");
    others.leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("communicator: ranks that wait in different communicators are told so by one of them") {
  for (const bool shared : {true, false}) {
    const CommunicatorOptions options{.deadline_seconds = 2, .shared_memory = shared};
    const auto ends = with_communicators(options, [&](GroupCommunicator& ranks) {
      const auto exchange = ranks.duplicate("the exchange");
      if (ranks.rank() == 1) ranks.gather_all("broken", "the error of rank 1");
      sum_ones(*exchange, "bucket 3");
    });
    CAPTURE(ends);
    CHECK(count_endings(ends, "says ") == 1);
    CHECK(count_endings(ends, "hears ") == 2);
    const auto names_both = [](const std::string& end) {
      return end.find("'bucket 3'") != std::string::npos &&
             end.find("'the error of rank 1'") != std::string::npos;
    };
    CHECK(std::ranges::all_of(ends, names_both));
  }
}

TEST_CASE("communicator: who has left makes no more calls, and leaves once") {
  std::atomic<int> refused = 0;
  const auto ends = with_communicators({}, [&](GroupCommunicator& ranks) {
    sum_ones(ranks, "ones");
    if (!ranks.leave(0)) throw InternalError("not all have left together");
    if (ranks.leave(0)) throw InternalError("a rank has left twice");
    try {
      ranks.barrier("after the end");
    } catch (const InternalError&) {
      ++refused;
    }
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  CHECK(refused == rank_count);
}

TEST_CASE(
    "communicator: ranks with an error leave together, and do not wait for each other to close the library") {
  for (const bool shared : {true, false}) {
    ThreadNetwork network(rank_count);
    const auto ends = endings(rank_count, [&](int rank) {
      std::unique_ptr<Transport> transport = network.transport(rank);
      const Transport& closed_by = *transport;
      GroupCommunicator ranks(std::move(transport), {.shared_memory = shared});
      try {
        const auto exchange = ranks.duplicate("the exchange");
        const auto mine = rank == 1 ? std::make_exception_ptr(UserError("broken")) : nullptr;
        agree_on_error(ranks, mine, "a step");
      } catch (const UserError&) {
        if (!ranks.leave(1)) throw InternalError("some rank did not come");
        if (!closed_by.abandoned()) throw InternalError("closing the library waits for the others");
      }
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

TEST_CASE(
    "communicator: of a rank that fails alone those hear soon that wait for it in a duplicate, and end with "
    "its status") {
  for (const bool shared : {true, false}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto ends = with_communicators({.shared_memory = shared}, [&](GroupCommunicator& ranks) {
      const auto exchange = ranks.duplicate("the exchange");
      if (ranks.rank() == 1) {
        if (ranks.leave(2)) throw InternalError("the others are elsewhere");
        throw UserError("broken");
      }
      try {
        sum_ones(*exchange, "bucket 3");
      } catch (const Error& error) {
        if (error.exit_status() != 2) throw InternalError("ends with another status");
        throw;
      }
    });
    const std::string hears = "hears rank 1 has left with an error of its own, which it reports";
    CHECK(ends == std::vector<std::string>{hears, "says broken", hears});
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
}

TEST_CASE("communicator: windows that no memory holds are refused on all ranks, which go on") {
  for (const bool shared : {true, false}) {
    const auto ends = with_communicators({.shared_memory = shared}, [](GroupCommunicator& ranks) {
      const std::string text = "'the gradients' takes 1125899906.8 MB of each of 3 ranks on ";
      try {
        ranks.allocate_shared(std::size_t{1} << 50, "the gradients");
        throw InternalError("so much memory was found");
      } catch (const DeviceError& error) {
        if (std::string(error.what()).find(text) == std::string::npos) throw;
      }
      sum_ones(ranks, "ones");
    });
    CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  }
}

TEST_CASE("communicator: a call of all ranks within a phase is refused on each rank, and all go on") {
  for (const int count : {1, rank_count}) {
    ThreadNetwork network(count);
    const auto ends = endings(count, [&](int rank) {
      GroupCommunicator ranks(network.transport(rank), {});
      const std::vector<std::function<void()>> calls{
          [&] { ranks.barrier("a call"); },
          [&] { ranks.gather_all("", "a call"); },
          [&] { ranks.broadcast(nullptr, 0, 0, "a call"); },
          [&] { ranks.sum(DType::float32, nullptr, 0, "a call"); },
          [&] { ranks.reduce_scatter(DType::float32, nullptr, 0, "a call"); },
          [&] { ranks.all_gather(DType::float32, nullptr, 0, "a call"); },
          [&] { ranks.all_to_all({}, {}, "a call"); },
          [&] { ranks.allocate_shared(64, "a call"); },
          [&] { ranks.duplicate("a call"); },
          [&] { ranks.split(0, "a call"); },
          [&] { ranks.mailbox("a call"); }};
      for (const auto& call : calls) {
        std::string text;
        try {
          together(ranks, "a phase", call);
        } catch (const InternalError& error) {
          text = error.what();
        }
        if (text.find("the call 'a call' of all ranks is made in the phase 'a phase'") == std::string::npos)
          throw InternalError("a call was not refused: " + text);
      }
      std::int64_t sum = 1;
      ranks.sum(DType::int64, reinterpret_cast<std::byte*>(&sum), 1, "how many we are");
      if (sum != count) throw InternalError("the sum is wrong");
      ranks.leave(0);
    });
    CHECK(ends == std::vector<std::string>(static_cast<std::size_t>(count), "fine"));
  }
}

TEST_CASE("communicator: a message of another size than expected") {
  const auto ends = with_communicators({}, [](GroupCommunicator& ranks) {
    std::array<std::byte, 8> data{};
    if (ranks.rank() == 1) ranks.send({0, 1}, std::span(data).first(4), "a weight");
    if (ranks.rank() == 0) ranks.receive({1, 1}, data, "a weight");
    ranks.barrier("the end");
  });
  const std::string text = "rank 0 expects 8 bytes for 'a weight', but rank 1 sent 4";
  CHECK(ends == std::vector<std::string>{"says " + text, "hears " + text, "hears " + text});
}

TEST_CASE("communicator: a message that is too long is refused, and the ranks go on") {
  const auto ends = with_communicators({}, [](GroupCommunicator& ranks) {
    const std::byte first{};
    const std::span too_long(&first, std::size_t{1} << 31);  // nothing reads it
    bool is_refused = false;
    try {
      ranks.send({(ranks.rank() + 1) % rank_count, 1}, too_long, "a weight");
    } catch (const UserError&) {
      is_refused = true;
    }
    if (!is_refused) throw InternalError("the message is not refused");
    sum_ones(ranks, "ones");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("communicator: a lost rank is named by a type of its own, and the others go on without it") {
  for (const bool shared : {true, false}) {
    ThreadNetwork network(rank_count);
    const CommunicatorOptions options{.deadline_seconds = 2, .shared_memory = shared};
    const auto ends = endings(rank_count, [&](int rank) {
      GroupCommunicator all(network.transport(rank), options);
      const auto exchange = all.duplicate("the exchange");
      if (rank == 1) {
        network.cut(rank);
        CHECK_THROWS_AS(all.leave(0), RankLost);
        return;
      }
      std::unique_ptr<Communicator> left;
      try {
        std::vector<float> values(1000, 1);
        exchange->sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), 1000, "bucket 3");
      } catch (const RankLost& loss) {
        if (loss.ranks() != std::vector<int>{1}) throw InternalError("another rank was lost");
        if (loss.call() != "'bucket 3' (sum of 1000 float32)") throw InternalError("in another call");
        left = all.without(loss.ranks());
      }
      if (left->size() != 2 || left->rank() != rank / 2) throw InternalError("others are left");
      std::int64_t sum = rank;
      left->sum(DType::int64, reinterpret_cast<std::byte*>(&sum), 1, "those that are left");
      if (sum != 2) throw InternalError("the sum of those that are left is wrong");
      if (!left->leave(0)) throw InternalError("not all have left together");
    });
    for (const std::string& end : ends) CHECK(end == "fine");
    CHECK(network.forgotten() == 0);
  }
}

TEST_CASE("communicator: ranks that are left bear the numbers that they had at the start") {
  ThreadNetwork network(4);
  const auto ends = endings(4, [&](int rank) {
    std::vector<std::unique_ptr<Communicator>> ranks;
    ranks.push_back(std::make_unique<GroupCommunicator>(
        network.transport(rank), CommunicatorOptions{.deadline_seconds = 60, .shared_memory = false}));
    for (const int lost : {0, 2}) {
      Communicator& all = *ranks.back();
      try {
        // No rank dies before this, because the others might learn of it before they enter the call.
        all.barrier("all have come");
        if (rank == lost) return network.bury(rank);
        all.barrier("bucket 3");
      } catch (const RankLost& loss) {
        if (loss.ranks() != std::vector<int>{lost}) throw InternalError("another rank was lost");
        ranks.push_back(all.without(loss.ranks()));
      }
    }
    if (ranks.back()->size() != 2) throw InternalError("others are left");
    ranks.back()->barrier(rank == 1 ? "one" : "another");
  });
  CHECK(count_endings(ends, "says rank 1 is at 'one' (barrier) while rank 3 is at 'another' (barrier)") == 1);
  CHECK(count_endings(ends, "fine") == 2);
}

TEST_CASE("communicator: what was to be received when an error came is given up") {
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = 0.25, .shared_memory = false});
    std::array<std::byte, 8> data{};
    if (rank == 0) ranks.barrier("the end");
    if (rank == 1) ranks.broadcast(data.data(), data.size(), 0, "a weight");
    if (rank == 2) ranks.receive({0, 1}, data, "a message");
  });
  CHECK(count_endings(ends, "fine") == 0);
  CHECK(network.forgotten() == 0);
}

TEST_CASE("communicator: ranks of one colour are a group of their own") {
  const auto ends = with_communicators({}, [](GroupCommunicator& ranks) {
    const auto part = ranks.split(ranks.rank() == 1 ? 1 : 0, "the ranks that train");
    std::int64_t sum = 1;
    part->sum(DType::int64, reinterpret_cast<std::byte*>(&sum), 1, "how many we are");
    if (sum != (ranks.rank() == 1 ? 1 : 2)) throw InternalError("the group is another");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

}  // namespace plexaura::testing::group_communicator_test

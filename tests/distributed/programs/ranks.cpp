// The scenarios that tests run under mpirun: `ranks SCENARIO [--deadline SECONDS] [--private]
// [--private-on-1] [--outlive] [--algorithm NAME]`. Exits with 0 on success, and prints one sentence
// otherwise.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/base/error.h"
#include "core/exchange/rank_lost.h"
#include "distributed/communicator/handshake.h"
#include "distributed/communicator/run_ranks.h"
#include "tests/distributed/programs/compressed_sums.h"
#include "tests/distributed/programs/sums.h"

namespace plexaura {
namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) throw InternalError("test failed: " + what);
}

// Every rank checks its own results. If one fails, all end together.
void together(Communicator& ranks, const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  agree_on_error(ranks, error, "a check of the test");
}

void some_work(Communicator& ranks, const char* what, std::int64_t count = 1000) {
  std::vector<float> values(static_cast<std::size_t>(count), 1);
  ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), count, what);
}

void sums(Communicator& ranks) {
  together(ranks, [&] { check_all_sums(ranks); });
}

void collectives(Communicator& ranks) {
  for (int root = 0; root < ranks.size(); ++root) {
    std::vector<int> values(1'500'000, ranks.rank() == root ? 7 + root : -1);
    ranks.broadcast(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(int), root,
                    "some values");
    together(ranks, [&] { expect(values == std::vector<int>(values.size(), 7 + root), "broadcast"); });
  }
  const std::string mine = std::string(static_cast<std::size_t>(ranks.rank() * 50'000), 'x') + ":\n";
  const std::vector<std::string> all = ranks.gather_all(mine, "some texts");
  together(ranks, [&] {
    expect(all.size() == static_cast<std::size_t>(ranks.size()), "one text per rank");
    for (std::size_t i = 0; i < all.size(); ++i)
      expect(all[i] == std::string(i * 50'000, 'x') + ":\n", "gather_all");
  });
  constexpr std::size_t block = 2'000'000;
  std::vector<std::byte> blocks(block * static_cast<std::size_t>(ranks.size()),
                                static_cast<std::byte>(ranks.rank()));
  std::vector<std::byte> received(blocks.size());
  ranks.all_to_all(blocks, received, "some blocks");
  together(ranks, [&] {
    for (std::size_t i = 0; i < received.size(); ++i)
      expect(received[i] == static_cast<std::byte>(i / block), "all_to_all");
  });
  std::unique_ptr<Communicator> half = ranks.split(ranks.rank() % 2, "even and odd ranks");
  std::int64_t sum = 1;
  half->sum(DType::int64, reinterpret_cast<std::byte*>(&sum), 1, "how many we are");
  together(ranks, [&] { expect(sum == half->size() && half->rank() == ranks.rank() / 2, "split"); });
}

void messages(Communicator& ranks) {
  const int next = (ranks.rank() + 1) % ranks.size();
  const int previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  std::vector<int> sent(200'000, ranks.rank());
  std::vector<int> received(sent.size());
  // Odd ranks receive first, because sending a long message may wait for its receiver.
  for (const bool sends : {ranks.rank() % 2 == 0, ranks.rank() % 2 != 0}) {
    if (sends) ranks.send({next, 5}, std::as_bytes(std::span(sent)), "a long message");
    if (!sends) ranks.receive({previous, 5}, std::as_writable_bytes(std::span(received)), "a long message");
  }
  together(ranks, [&] { expect(received == std::vector<int>(sent.size(), previous), "a message"); });
}

constexpr int letter_tag = 7;

// Rank 0 receives letters from all others, one of which dies. The rest continue, and end without it.
void letters(Communicator& ranks) {
  const std::unique_ptr<Mailbox> box = ranks.mailbox("letters");
  const std::vector<std::byte> long_letter(300'000, std::byte{1});
  constexpr int dying = 1;
  if (ranks.rank() == dying) {
    for (int i = 0; i < 3; ++i) box->post(0, letter_tag, long_letter);
    if (!box->take(letter_tag, 20)) throw InternalError("test failed: no answer");
    std::raise(SIGKILL);
  }
  if (ranks.rank() == 0) {
    for (int from_dying = 0; from_dying < 3;) {
      const auto letter = box->take(letter_tag, 20);
      expect(letter && letter->bytes == long_letter, "a letter");
      if (letter->from == dying) ++from_dying;
    }
    expect(box->post(dying, letter_tag, long_letter) == Posted::sent, "the answer");
    while (!box->is_lost(dying)) box->take(letter_tag, 0.01);
    expect(box->post(dying, letter_tag, long_letter) == Posted::lost, "a dead rank is a status");
    const auto letter = box->take(letter_tag, 20);
    expect(letter && letter->from != dying, "letters of the others after the death");
    for (int to = dying + 1; to < ranks.size(); ++to) box->post(to, letter_tag, {});
  } else {
    while (box->post(0, letter_tag, long_letter), !box->take(letter_tag, 0.05)) {
    }
  }
  const std::array lost{dying};
  const std::unique_ptr<Communicator> left = ranks.without(lost);
  some_work(*left, "those that are left");
  if (left->rank() == 0) fmt::print("{} ranks have ended without rank 1\n", left->size());
  left->leave(0);
  std::fflush(nullptr);
  _exit(0);  // MPI cannot be closed without the lost rank
}

// Each rank has two threads, each with its own communicator.
void threads(Communicator& ranks) {
  const std::unique_ptr<Communicator> other = ranks.duplicate("a second thread");
  std::exception_ptr error;
  std::thread second([&] {
    try {
      for (int i = 0; i < 200; ++i) some_work(*other, "the second thread");
    } catch (...) {
      error = std::current_exception();
    }
  });
  for (int i = 0; i < 100; ++i) some_work(ranks, "the first thread", 70'000);
  second.join();
  agree_on_error(ranks, error, "the second thread");
}

void long_message(Communicator& ranks) {
  std::array<std::byte, 8> data{};
  if (ranks.rank() == 1) ranks.send({0, 1}, std::span(data).first(4), "a weight");
  if (ranks.rank() == 0) ranks.receive({1, 1}, data, "a weight");
  ranks.barrier("the end");
}

// The message is refused because of its size, before its contents are read.
void too_long_message(Communicator& ranks) {
  std::byte first{};
  if (ranks.rank() == 1) ranks.send({0, 1}, std::span(&first, std::size_t{3} << 30), "a weight");
  if (ranks.rank() == 0) ranks.receive({1, 1}, std::span(&first, 1), "a weight");
  ranks.barrier("the end");
}

void mismatch(Communicator& ranks) {
  some_work(ranks, "bucket 2 of step 17");
  some_work(ranks, "bucket 3 of step 17", ranks.rank() == 1 ? 4096 : 1000);
}

void other_order(Communicator& ranks) {
  if (ranks.rank() == 1) some_work(ranks, "bucket 4 of step 17");
  some_work(ranks, "bucket 3 of step 17");
}

void missing(Communicator& ranks) {
  some_work(ranks, "bucket 2 of step 17");
  if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  some_work(ranks, "bucket 3 of step 17");
}

void silenced(Communicator& ranks, int rank, int signal) {
  some_work(ranks, "bucket 2 of step 17");
  if (ranks.rank() == rank) raise(signal);
  while (true) some_work(ranks, "bucket 3 of step 18");
}

void die_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(getpid(), SIGKILL);
  }).detach();
}

// The rank is killed during sums, at an arbitrary moment.
void killed_in_sum(Communicator& ranks) {
  some_work(ranks, "bucket 2 of step 17");
  if (ranks.rank() == 1) die_soon();
  while (true) some_work(ranks, "bucket 3 of step 18", 4'000'000);
}

// The same during an exchange of blocks.
void killed_in_blocks(Communicator& ranks) {
  some_work(ranks, "bucket 2 of step 17");
  if (ranks.rank() == 1) die_soon();
  std::vector<std::byte> blocks(1'000'000 * static_cast<std::size_t>(ranks.size()));
  std::vector<std::byte> received(blocks.size());
  while (true) ranks.all_to_all(blocks, received, "bucket 3 of step 18");
}

// Two ranks die one after another, the second one as rank 0 of the remaining ranks. The others close MPI as
// usual.
void outlived(Communicator& all) {
  expect(all.outlives_ranks(), "this MPI does not outlive ranks");
  std::unique_ptr<Communicator> left = all.duplicate("the sums");
  for (const int dying : {1, 0}) {
    const int ranks = left->size();
    if (left->rank() == dying) die_soon();
    try {
      while (true) some_work(*left, "bucket 3 of step 18", 4'000'000);
    } catch (const RankLost& loss) {
      expect(loss.is_outlived(), "the loss is not outlived");
      left = all.without(loss.ranks());
    }
    expect(left->size() == ranks - 1, "another number of ranks is left");
    sums(*left);
  }
  if (left->rank() == 0) fmt::print("{} ranks are left\n", left->size());
}

void left_early(Communicator& ranks) {
  if (ranks.rank() != 1) some_work(ranks, "bucket 3 of step 17");
}

void throws(Communicator& ranks) {
  together(ranks, [&] {
    if (ranks.rank() >= 1) throw UserError(fmt::format("photos/{}.jpg is not an image", ranks.rank()));
  });
}

void out_of_memory(Communicator& ranks) {
  together(ranks, [&] {
    if (ranks.rank() >= 1) throw std::bad_alloc();
  });
}

void throws_alone(Communicator& ranks) {
  const std::unique_ptr<Communicator> other = ranks.duplicate("another thread's");
  if (ranks.rank() == 1) throw UserError("photos/1.jpg is not an image");
  while (true) some_work(*other, "bucket 3 of step 17");
}

void disagree(Communicator& ranks) {
  check_agreement(ranks,
                  {{"configuration", "c0ffee"}, {"seed", ranks.rank() == ranks.size() - 1 ? "7" : "42"}});
}

void expect_shared(Communicator& ranks, bool shared) {
  const SharedWindow window = ranks.allocate_shared(std::size_t{8} << 20, "the gradients");
  together(ranks, [&] { expect(window.shared() == shared, shared ? "shared memory" : "private memory"); });
  sums(ranks);
}

void nodes(Communicator& ranks, int count) {
  together(ranks, [&] {
    const NodePlace& place = ranks.place();
    expect(place.count == count, fmt::format("{} nodes, not {}", count, place.count));
    expect(place.size == ranks.size() / count, "ranks spread evenly over nodes");
  });
  expect_shared(ranks, ranks.size() > count);
}

const std::map<std::string, std::function<void(Communicator&)>>& scenarios() {
  static const std::map<std::string, std::function<void(Communicator&)>> all{
      {"sums", sums},
      {"collectives", collectives},
      {"compressed-sums", check_compressed_sums},
      {"messages", messages},
      {"letters", letters},
      {"threads", threads},
      {"long-message", long_message},
      {"too-long-message", too_long_message},
      {"mismatch", mismatch},
      {"other-order", other_order},
      {"missing", missing},
      {"left-early", left_early},
      {"throws", throws},
      {"out-of-memory", out_of_memory},
      {"throws-alone", throws_alone},
      {"disagree", disagree},
      {"killed-in-sum", killed_in_sum},
      {"killed-in-blocks", killed_in_blocks},
      {"outlived", outlived},
      {"killed", [](Communicator& ranks) { silenced(ranks, 1, SIGKILL); }},
      {"stopped", [](Communicator& ranks) { silenced(ranks, 1, SIGSTOP); }},
      {"last-host-stopped",
       [](Communicator& ranks) {
         const bool is_last = ranks.place().index + 1 == ranks.place().count;
         silenced(ranks, is_last ? ranks.rank() : -1, SIGSTOP);
       }},
      {"root-stopped", [](Communicator& ranks) { silenced(ranks, 0, SIGSTOP); }},
      {"shared", [](Communicator& ranks) { expect_shared(ranks, true); }},
      {"not-shared", [](Communicator& ranks) { expect_shared(ranks, false); }},
      {"two-nodes", [](Communicator& ranks) { nodes(ranks, 2); }},
  };
  return all;
}

// Returns the rank before MPI has started.
int rank_of_environment() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr ? std::atoi(rank) : 0;
}

int run(int argc, char** argv) {
  CommunicatorOptions options{.deadline_seconds = 20};
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--private") == 0) options.shared_memory = false;
    if (std::strcmp(argv[i], "--outlive") == 0) options.outlive_ranks = true;
    if (std::strcmp(argv[i], "--private-on-1") == 0) options.shared_memory = rank_of_environment() != 1;
    if (std::strcmp(argv[i], "--algorithm") == 0 && i + 1 < argc) options.algorithm = argv[i + 1];
    if (std::strcmp(argv[i], "--deadline") == 0 && i + 1 < argc)
      options.deadline_seconds = std::atof(argv[i + 1]);
  }
  return run_ranks(options, [&](Communicator& ranks) {
    const auto scenario = scenarios().find(argc > 1 ? argv[1] : "");
    if (scenario == scenarios().end()) throw UserError("name a scenario");
    scenario->second(ranks);
    return 0;
  });
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) { return plexaura::run(argc, argv); }

#include "tests/distributed/wire/thread_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/exchange/collective.h"
#include "distributed/node/reduce.h"

namespace plexaura::testing {

class ThreadNetwork::Member final : public Transport {
 public:
  // `members` are the numbers of the group's ranks in the network; `self` is one of them.
  Member(ThreadNetwork& network, std::string group, std::vector<int> members, int self)
      : network_(network), group_(std::move(group)), members_(std::move(members)), self_(self) {}
  ~Member() override {
    const std::lock_guard lock(network_.mutex_);
    network_.forgotten_ += static_cast<int>(std::ranges::count(receipts_, true, &Receipt::open));
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int rank() const override {
    return static_cast<int>(std::ranges::find(members_, self_) - members_.begin());
  }
  int size() const override { return static_cast<int>(members_.size()); }

  Request send(std::span<const std::byte> data, int to, int tag) override {
    count_sent(data.size());
    if (const double pace = network_.seconds_per_byte_; pace > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(pace * static_cast<double>(data.size())));
    const std::lock_guard lock(network_.mutex_);
    if (!network_.cut_.contains(self_) && !network_.cut_.contains(member(to))) {
      network_.messages_[{group_, self_, member(to), tag}].emplace_back(data.begin(), data.end());
      network_.bytes_sent_[{self_, member(to)}] += data.size();
      ++network_.messages_sent_[{self_, member(to)}];
      ++network_.unread(member(to));
    }
    return {};
  }

  Request receive(std::span<std::byte> data, int from, int tag) override {
    receipts_.push_back({data, from, tag});
    return {receipts_.size()};
  }

  bool done(Request& request) override {
    if (request.handle == 0) return true;
    if (network_.unread(self_) == 0) return false;
    Receipt& receipt = receipts_[request.handle - 1];
    const std::lock_guard lock(network_.mutex_);
    std::deque<Message>& queue = network_.messages_[{group_, member(receipt.from), self_, receipt.tag}];
    if (queue.empty()) return false;
    if (queue.front().size() > receipt.data.size()) throw DeviceError("a message is too long");
    std::ranges::copy(queue.front(), receipt.data.begin());
    queue.pop_front();
    --network_.unread(self_);
    receipt.open = false;
    return true;
  }

  // Messages are copied, so nothing has to stay alive.
  void keep(const Request& request, std::shared_ptr<const void>) override {
    if (request.handle > 0) receipts_[request.handle - 1].open = false;
  }

  std::optional<Envelope> waiting(int from, int tag) override {
    if (network_.unread(self_) == 0) return std::nullopt;
    const std::lock_guard lock(network_.mutex_);
    for (int rank = 0; rank < size(); ++rank) {
      const std::deque<Message>& queue = network_.messages_[{group_, member(rank), self_, tag}];
      if ((from == anyone || from == rank) && !queue.empty()) return Envelope{rank, queue.front().size()};
    }
    return std::nullopt;
  }

  std::unique_ptr<Transport> duplicate() override {
    return std::make_unique<Member>(network_, group_ + "." + std::to_string(duplicates_++), members_, self_);
  }

  std::unique_ptr<Transport> split(int colour) override {
    const std::string call = group_ + "/" + std::to_string(duplicates_++);
    std::map<int, int>& colours = network_.colours_of(call);
    {
      const std::lock_guard lock(network_.mutex_);
      colours[self_] = colour;
    }
    for (std::size_t known = 0; known < members_.size(); std::this_thread::yield()) {
      const std::lock_guard lock(network_.mutex_);
      known = colours.size();
    }
    std::vector<int> same;
    for (const int other : members_)
      if (colours.at(other) == colour) same.push_back(other);
    return std::make_unique<Member>(network_, call + ":" + std::to_string(colour), std::move(same), self_);
  }

  bool outlives_ranks() const override { return true; }
  std::vector<int> dead() override {
    const std::lock_guard lock(network_.mutex_);
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank)
      if (network_.dead_.contains(member(rank))) ranks.push_back(rank);
    return ranks;
  }

  // Drops the links of one rank in each call.
  void drop_silent_links() override {
    const std::lock_guard lock(network_.mutex_);
    const auto silent =
        std::ranges::find_if(network_.cut_, [&](int rank) { return !network_.dead_.contains(rank); });
    if (silent != network_.cut_.end()) network_.dead_.insert(*silent);
  }

  std::unique_ptr<Transport> without(std::span<const int> lost, double) override {
    std::vector<int> members;
    for (int rank = 0; rank < size(); ++rank)
      if (std::ranges::find(lost, rank) == lost.end()) members.push_back(member(rank));
    return std::make_unique<Member>(network_, group_ + " without some", std::move(members), self_);
  }

  // Adds from the last rank to the first, unlike our own algorithms.
  void all_reduce(DType dtype, std::byte* data, std::int64_t count) override {
    constexpr int tag = -2;
    std::vector<std::byte> others(bytes_of(dtype, count));
    const auto take = [&](int from) {
      Request request = receive(others, from, tag);
      while (!done(request)) std::this_thread::yield();
    };
    if (rank() + 1 < size()) {
      take(rank() + 1);
      add(dtype, data, others.data(), count);
    }
    if (rank() > 0) {
      send({data, others.size()}, rank() - 1, tag);
      take(rank() - 1);
      std::ranges::copy(others, data);
    }
    if (rank() + 1 < size()) send({data, others.size()}, rank() + 1, tag);
  }

  void abandon() noexcept override { abandoned_ = true; }
  bool abandoned() const noexcept override { return abandoned_; }

 private:
  struct Receipt {
    std::span<std::byte> data;
    int from;
    int tag;
    bool open = true;
  };

  int member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  ThreadNetwork& network_;
  std::string group_;
  std::vector<int> members_;
  int self_;
  int duplicates_ = 0;
  bool abandoned_ = false;
  std::vector<Receipt> receipts_;
};

std::unique_ptr<Transport> ThreadNetwork::transport(int rank) {
  std::vector<int> all(static_cast<std::size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return std::make_unique<Member>(*this, "", std::move(all), rank);
}

std::map<int, int>& ThreadNetwork::colours_of(const std::string& call) {
  const std::lock_guard lock(mutex_);
  return colours_[call];
}

std::size_t ThreadNetwork::bytes_sent(int from, int to) {
  const std::lock_guard lock(mutex_);
  return bytes_sent_[{from, to}];
}

int ThreadNetwork::messages_sent(int from, int to) {
  const std::lock_guard lock(mutex_);
  return messages_sent_[{from, to}];
}

int ThreadNetwork::forgotten() {
  const std::lock_guard lock(mutex_);
  return forgotten_;
}

void ThreadNetwork::cut(int rank) {
  const std::lock_guard lock(mutex_);
  cut_.insert(rank);
}

void ThreadNetwork::bury(int rank) {
  cut(rank);
  const std::lock_guard lock(mutex_);
  dead_.insert(rank);
}

std::vector<std::string> endings(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::string> ends(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&body, rank, &end = ends[static_cast<std::size_t>(rank)]] {
      try {
        body(rank);
        end = "fine";
      } catch (const std::exception& error) {
        end = (speaks(error) ? "says " : "hears ") + std::string(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

int count_endings(const std::vector<std::string>& endings, const std::string& begin) {
  return static_cast<int>(
      std::ranges::count_if(endings, [&](const std::string& end) { return end.starts_with(begin); }));
}

}  // namespace plexaura::testing

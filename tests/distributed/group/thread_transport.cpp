#include "tests/distributed/group/thread_transport.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/ranks/collective.h"

namespace plexaura::testing {

class ThreadNetwork::Member final : public Transport {
 public:
  Member(ThreadNetwork& network, std::string group, int rank)
      : network_(network), group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return network_.size_; }

  Request send(std::span<const std::byte> data, int to, int tag) override {
    const std::lock_guard lock(network_.mutex_);
    if (!network_.cut_.contains(rank_) && !network_.cut_.contains(to)) {
      network_.messages_[{group_, rank_, to, tag}].emplace_back(data.begin(), data.end());
    }
    return {};
  }

  Request receive(std::span<std::byte> data, int from, int tag) override {
    receipts_.push_back({data, from, tag});
    return {receipts_.size()};
  }

  bool done(Request& request) override {
    if (request.handle == 0) return true;
    const Receipt& receipt = receipts_[request.handle - 1];
    const std::lock_guard lock(network_.mutex_);
    std::deque<Message>& queue = network_.messages_[{group_, receipt.from, rank_, receipt.tag}];
    if (queue.empty()) return false;
    if (queue.front().size() > receipt.data.size()) throw DeviceError("a message is too long");
    std::ranges::copy(queue.front(), receipt.data.begin());
    queue.pop_front();
    return true;
  }

  std::optional<Envelope> waiting(int from, int tag) override {
    const std::lock_guard lock(network_.mutex_);
    for (int rank = 0; rank < network_.size_; ++rank) {
      const std::deque<Message>& queue = network_.messages_[{group_, rank, rank_, tag}];
      if ((from == anyone || from == rank) && !queue.empty()) return Envelope{rank, queue.front().size()};
    }
    return std::nullopt;
  }

  std::unique_ptr<Transport> duplicate() override {
    return std::make_unique<Member>(network_, group_ + "." + std::to_string(duplicates_++), rank_);
  }
  std::unique_ptr<Transport> split(int) override { throw InternalError("threads are not split"); }

  void abandon() noexcept override { abandoned_ = true; }
  bool abandoned() const noexcept override { return abandoned_; }

 private:
  struct Receipt {
    std::span<std::byte> data;
    int from;
    int tag;
  };

  ThreadNetwork& network_;
  std::string group_;
  int rank_;
  int duplicates_ = 0;
  bool abandoned_ = false;
  std::vector<Receipt> receipts_;
};

std::unique_ptr<Transport> ThreadNetwork::transport(int rank) {
  return std::make_unique<Member>(*this, "", rank);
}

void ThreadNetwork::cut(int rank) {
  const std::lock_guard lock(mutex_);
  cut_.insert(rank);
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

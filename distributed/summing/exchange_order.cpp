#include "distributed/summing/exchange_order.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace plexaura {

namespace {

// The number of steps before the ranks first agree on an order. The first steps of a run take longer than
// later ones.
constexpr std::int64_t first_steps = 3;
constexpr std::int64_t steps_between = 16;

}  // namespace

std::vector<std::size_t> last_first(std::span<const std::int64_t> ready) {
  std::vector<std::size_t> left(ready.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<std::size_t> order;
  for (const std::int64_t final : ready) {
    auto next = std::ranges::lower_bound(left, static_cast<std::size_t>(final));
    if (next != left.begin()) --next;
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

ExchangeOrder::ExchangeOrder(Collective& ranks, std::size_t buckets)
    : ranks_(ranks),
      order_(buckets),
      ready_(buckets),
      all_(buckets * static_cast<std::size_t>(ranks.size())) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

std::size_t ExchangeOrder::bucket(std::size_t place, std::size_t ready, bool in_order, std::int64_t step) {
  if (place == 0 && ++steps_ % steps_between == first_steps + 1) agree(step);
  ready_[place] = static_cast<std::int64_t>(in_order ? place + 1 : ready);
  return order_[place];
}

// Chooses the order from the least count of all ranks: if a bucket were final on some ranks only, these would
// wait for the other ranks.
void ExchangeOrder::agree(std::int64_t step) {
  std::ranges::fill(all_, 0);
  std::ranges::copy(ready_, all_.begin() + static_cast<std::ptrdiff_t>(ready_.size()) * ranks_.rank());
  ranks_.sum(DType::int64, reinterpret_cast<std::byte*>(all_.data()), static_cast<std::int64_t>(all_.size()),
             fmt::format("the order of the buckets from step {}", step));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    std::int64_t& least = ready_[i % ready_.size()];
    least = std::min(least, all_[i]);
  }
  order_ = last_first(ready_);
}

}  // namespace plexaura

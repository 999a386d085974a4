#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/servers/server_rule.h"

namespace plexaura {

// Judges what clients push before a server takes it in, so that one whose training diverges does not spoil the weights of
// all. A push is refused where it, or what it would make of the weights, is not finite. It is also refused where it is
// too large: where it would change the trainables by more than `limit` times their own norm, and by more than `limit`
// times what the last pushes of all clients have changed them (the median of their norms). While both are 0, no size is
// too large. Pushes that grow by less than that from one to the next are taken in: so does an honest learning rate grow from
// nothing, where the weights of this server begin at 0.
class PushJudge {
 public:
  // Ten times the learning rate of the others changes weights about ten times as far, which is no divergence.
  static constexpr double default_limit = 100;

  // `limit`: above 1.
  explicit PushJudge(double limit = default_limit) : limit_(limit) {}

  // Takes in a push as mix_in() does, or leaves the weights as they are and returns why, as a sentence to the client.
  template <class T>
  std::optional<std::string> take_in(const ServerRule& rule, std::int64_t staleness, std::int64_t clients,
                                     std::size_t trainables, std::span<const T> pushed, std::span<T> weights);

 private:
  double median() const;

  double limit_;
  std::deque<double> norms_;       // of the changes by the last pushes that were taken in
  std::vector<std::byte> behind_;  // scratch: the weights behind a push
};

}  // namespace plexaura

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

// Judges pushes before a server takes them in, so that a client whose training diverges does not spoil the
// weights of all. A push is refused if it, or the weights after it, are not finite. It is also refused if it
// is too large: if it changes the trainables by more than `limit` times their own norm, and also by more than
// `limit` times the median norm of the last changes of all clients. While both norms are 0, no push is too
// large. So pushes that grow step by step are accepted: this happens if a learning rate warms up and the
// weights of this server begin at 0.
class PushJudge {
 public:
  // The default of `limit`. A client with ten times the learning rate of the others changes weights about ten
  // times as far, and does not diverge.
  static constexpr double default_limit = 100;

  // `limit` must be above 1.
  explicit PushJudge(double limit = default_limit) : limit_(limit) {}

  // A push of a client, with the arguments of mix_in().
  struct Push {
    std::int64_t staleness = 0;
    std::int64_t clients = 1;  // number of clients that have joined and live
    std::span<const std::byte> content = {};
  };

  // Mixes a push into the weights. If the push is refused, leaves the weights unchanged and returns the
  // reason as a sentence to the client.
  std::optional<std::string> take_in(const ServerRule& rule, const WeightForm& form, const Push& push,
                                     std::span<std::byte> weights);

 private:
  template <class T>
  std::optional<std::string> take_elements(const ServerRule& rule, std::size_t trainables, const Push& push,
                                           std::span<T> weights);
  double median() const;

  double limit_;
  std::deque<double> norms_;      // norms of the changes by the last accepted pushes
  std::vector<std::byte> after_;  // buffer for the weights after a push
};

}  // namespace plexaura

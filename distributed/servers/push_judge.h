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

// Judges pushes before a server takes them in, so that a client whose training diverges does not spoil the weights of all. A push is
// refused if it, or the weights after it, are not finite. It is also refused if it is too large: if it changes the trainables
// by more than `limit` times their own norm, and also by more than `limit` times the median norm of the last changes of all clients.
// While both norms are 0, no push is too large. Pushes that grow by less than `limit` from one to the next are taken in: a
// learning rate that warms up looks like that if the weights of this server begin at 0.
class PushJudge {
 public:
  // A client with ten times the learning rate of the others changes weights about ten times as far, and does not diverge.
  static constexpr double default_limit = 100;

  // `limit`: above 1.
  explicit PushJudge(double limit = default_limit) : limit_(limit) {}

  // A push of a client, as mix_in() takes it.
  struct Push {
    std::int64_t staleness = 0;
    std::int64_t clients = 1;  // that are at work
    std::span<const std::byte> content = {};
  };

  // Mixes a push into the weights. Or leaves the weights as they are and returns why, as a sentence to the client.
  std::optional<std::string> take_in(const ServerRule& rule, const WeightForm& form, const Push& push,
                                     std::span<std::byte> weights);

 private:
  template <class T>
  std::optional<std::string> take_elements(const ServerRule& rule, std::size_t trainables, const Push& push,
                                           std::span<T> weights);
  double median() const;

  double limit_;
  std::deque<double> norms_;      // of the changes by the last pushes that were taken in
  std::vector<std::byte> after_;  // scratch: the weights after a push
};

}  // namespace plexaura

#pragma once

#include <doctest/doctest.h>
#include <string>

#include "distributed/servers/ranks/async_server.h"
#include "tests/distributed/strategies/moved_ranks.h"

namespace plexaura::testing {

// A client of a parameter server whose steps are made by the test.
class MovedClient {
 public:
  explicit MovedClient(AsyncServer& strategy) : strategy_(strategy.parts()), rank_(strategy) {}

  void step(double to) { rank_.step({.number = 1, .samples = 4}, to); }
  Numbers values() const { return rank_.values(); }
  // Draws a part. Returns false if there is none left.
  bool draws(std::int64_t steps) {
    return strategy_.dealer->draw({.first = 0, .end = steps, .parts = 2, .parts_of_last = 2})
        .part.has_value();
  }
  bool is_over() { return strategy_.dealer->is_over(); }
  void rest() { strategy_.weights->show_weights(); }

 private:
  StrategyParts strategy_;
  MovedRank rank_;
};

// Returns true if the account contains the text: rows of clients without their idle share, or the histogram.
inline bool tells(const std::string& account, const std::string& text) {
  CAPTURE(account);
  return account.find(text) != std::string::npos;
}

}  // namespace plexaura::testing

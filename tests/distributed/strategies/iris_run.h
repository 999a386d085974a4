#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/exchange_record.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing {

// As many epochs as show that runs have the same weights. At least two: tests stop runs behind step 20, within the second.
inline constexpr const char* few_epochs = sanitized ? "training.epochs=2" : "training.epochs=6";

// How a rank that trains has ended.
struct IrisEnd {
  std::string weights;  // the bytes of all
  std::vector<double> values;
  double accuracy = 0;  // of the last validation
  std::int64_t steps = 0;
  std::optional<ExchangeRecord> exchange = {};  // of the last epoch
};

// Trains models/iris.yaml on so many ranks, which are threads with a communicator as under mpirun, each with its part of
// the strategy. They are on one host. `settings` overrides keys of the file, whose checkpoints go nowhere. Gives the ends of those that
// train, in the order of ranks. InternalError where a rank fails.
std::vector<IrisEnd> train_iris(int ranks, std::vector<std::string> settings,
                                std::optional<std::int64_t> steps = {}, bool resume = false);
// The same on a rank for each of these hosts, which it believes to run on.
std::vector<IrisEnd> train_iris(const std::vector<std::string>& hosts, std::vector<std::string> settings,
                                std::optional<std::int64_t> steps = {}, bool resume = false);

// The largest distance between two numbers in the same place.
double distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace plexaura::testing

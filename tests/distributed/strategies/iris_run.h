#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/exchange_record.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing {

// Settings that override keys of the YAML file, each "key=value".
using Settings = std::vector<std::string>;

// Returns `settings` followed by `more`. A later setting of the same key overrides an earlier one.
Settings with(Settings settings, const Settings& more);

// Enough epochs to show that runs have the same weights, and at least two, because tests stop runs after step
// 20, in the second epoch.
inline const char* const few_epochs = sanitized ? "training.epochs=2" : "training.epochs=6";

// The result of a rank that trains.
struct IrisEnd {
  std::string weights;  // the bytes of all weights
  std::vector<double> values;
  double accuracy = 0;  // of the last validation
  std::int64_t steps = 0;
  std::optional<ExchangeRecord> exchange = {};  // of the last epoch
};

// Trains models/iris.yaml on ranks that are threads of one host, each with its part of the strategy and a
// communicator as under mpirun. `settings` override keys of the file; without output.dir there are no
// checkpoints. Returns the ends of the ranks that train, in the order of ranks. Throws InternalError if a
// rank fails.
std::vector<IrisEnd> train_iris(int ranks, Settings settings, std::optional<std::int64_t> steps = {},
                                bool resume = false);
// The same with one rank for each host name. The rank behaves as if it ran on that host.
std::vector<IrisEnd> train_iris(const std::vector<std::string>& hosts, Settings settings,
                                std::optional<std::int64_t> steps = {}, bool resume = false);

// Checks that ranks which train with these settings end twice with the same weights, whose accuracy is about
// that of one rank.
void check_learns(int ranks, const Settings& settings);

// Checks that a run on these hosts, which is stopped after `stop` steps and resumed, ends on each rank with the
// bits of a run that was never stopped.
void check_resumes(const std::vector<std::string>& hosts, const Settings& settings, std::int64_t stop);
// The same on one host.
void check_resumes(int ranks, const Settings& settings, std::int64_t stop);

// Returns the largest absolute difference of two elements with the same index.
double distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace plexaura::testing

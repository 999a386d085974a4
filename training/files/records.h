#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/exchange_record.h"
#include "training/ranks/rank_waits.h"

namespace plexaura {

// What a metric of the model came to, as a mean over samples of all ranks.
struct MetricValue {
  std::string name;
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};

// The value of the metric of this name. UserError that names the nearest for one that the model does not
// report.
double value_of(std::string_view name, std::span<const MetricValue> metrics);

// What a training step reports, over all ranks.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  std::vector<MetricValue> metrics = {};
  double images_per_second = 0;
  double learning_rate = 0;
  std::int64_t step_in_epoch = 0;  // from 1; for people, and not in the log
};

// What an epoch reports, over all ranks. What was validated is not a number where nothing was.
struct EpochRecord {
  std::int64_t epoch = 0;
  double train_loss = 0;
  double val_loss = 0;
  std::vector<MetricValue> val_metrics = {};
  double seconds = 0;
  std::optional<ExchangeRecord> exchange = {};  // of this rank alone
  // None for one rank, and where a device computes while the host waits.
  std::optional<RankWaits> waits = {};
};

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/exchange_record.h"
#include "core/params/placement.h"
#include "training/ranks/rank_waits.h"

namespace plexaura {

// The value of a metric of the model, over the samples of all ranks.
struct MetricValue {
  std::string name;
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};

// Returns the value of the metric with this name. Throws UserError that lists the metrics and suggests a similar
// name if the model does not report it.
double value_of(std::string_view name, std::span<const MetricValue> metrics);

// The results of a training step over all ranks.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  std::vector<MetricValue> metrics = {};
  double images_per_second = 0;
  double learning_rate = 0;
  // Number of the step in its epoch, from 1; for display only, not in the log.
  std::int64_t step_in_epoch = 0;
  // Texts about parameters that are not trained, such as "'fc1.weight' is zero everywhere". The first step of
  // a run reports gradients that are not finite. The second step reports gradients that are zero in every
  // element. Not in the log.
  std::vector<std::string> dead_gradients = {};
};

// The results of an epoch over all ranks. Validation results are NaN if nothing was validated.
struct EpochRecord {
  std::int64_t epoch = 0;
  double train_loss = 0;
  double val_loss = 0;
  std::vector<MetricValue> val_metrics = {};
  double seconds = 0;
  // The exchanges of this rank; empty if it has exchanged nothing.
  std::optional<ExchangeRecord> exchange = {};
  // Empty with one rank, and if a device computes while the host waits.
  std::optional<RankWaits> waits = {};
  std::optional<LossScale> loss_scale = {};  // loss scale at the end of the epoch; only in float16
  std::int64_t step = 0;                     // number of updates at the end of the epoch; not in the log
};

}  // namespace plexaura

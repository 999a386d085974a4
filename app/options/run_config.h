#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/params/placement.h"
#include "distributed/strategies/strategies.h"
#include "models/config/config.h"
#include "training/loop/trainer.h"

namespace plexaura {

// The reaction of the other ranks if a rank dies and the MPI library outlives ranks.
enum class OnLoss : std::uint8_t {
  end,   // the other ranks end too
  drop,  // the other ranks divide the data anew, and continue
  exact  // the other ranks compute the dead rank's part of each step, and continue with the same bits
};

// The value of distributed.algorithm for sums on devices. The communicator does not know it.
inline constexpr std::string_view device_algorithm = "device";

struct RunOptions {
  ArenaTypes types = {};  // the dtypes of the arenas, from training.precision
  // True: training.precision is auto, and decide_precision() may replace `types`.
  bool finds_precision = false;
  StrategyOptions strategy = {};
  CommunicatorOptions communicator = {};          // without `algorithm`, which has its own member
  std::string algorithm = "auto";                 // algorithm by which the strategy sums
  std::optional<std::int64_t> bucket_bytes = {};  // value of distributed.bucket_bytes; empty: auto
  bool finds_buckets = false;  // true: measurements may replace trainer.bucket_bytes by a faster size
  // Number of steps between two broadcasts of the weights. Used if processors are of several kinds and the
  // strategy does not realign weights.
  std::int64_t rebroadcast_every = 100;
  OnLoss on_loss = OnLoss::end;
  Tuning tuning = Tuning::cached;
  std::vector<std::string> freeze;  // patterns of parameters that are not trained
  TrainerOptions trainer = {.seed = 1};
};

// Reads the sections `training`, `distributed` and `output`. `samples` is the number of training samples, on
// which the length of schedules may depend; 0 if no training set is open, or if schedules need not fit it.
RunOptions read_options(const Config& config, std::int64_t samples, int ranks);

// Reads output.dir, the folder of checkpoints, before the other sections can be read. Returns an empty path
// if there is none.
std::filesystem::path read_output_folder(const Config& config);

}  // namespace plexaura

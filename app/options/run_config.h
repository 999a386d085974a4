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

// What happens to the others when a rank dies, where the MPI outlives ranks.
enum class OnLoss : std::uint8_t {
  end,   // they end, too
  drop,  // they share out the data anew, and go on
  exact  // they compute its part of each step, and go on to the same bits
};

// The value of distributed.algorithm with which devices sum; it is none of the communicator's.
inline constexpr std::string_view device_algorithm = "device";

struct RunOptions {
  ArenaTypes types = {};  // training.precision
  StrategyOptions strategy = {};
  CommunicatorOptions communicator = {};          // without its algorithm
  std::string algorithm = "auto";                 // of the sums that the strategy makes
  std::optional<std::int64_t> bucket_bytes = {};  // as the file has them; none: auto
  bool finds_buckets = false;  // trainer.bucket_bytes is where no other size is found to be faster
  // Steps, where processors are of several kinds and the strategy does not align them.
  std::int64_t rebroadcast_every = 100;
  OnLoss on_loss = OnLoss::end;
  Tuning tuning = Tuning::cached;
  std::vector<std::string> freeze;  // patterns of parameters that are not trained
  TrainerOptions trainer = {.seed = 1};
};

// Reads the sections `training`, `distributed` and `output`. `samples` of the training set, for schedules
// that know the whole run; 0 where none is open.
RunOptions read_options(const Config& config, std::int64_t samples, int ranks);

// Reads output.dir, the folder of checkpoints, before the other sections can be read; empty for none.
std::filesystem::path read_output_folder(const Config& config);

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/options/run_config.h"
#include "app/options/schedule_input.h"
#include "models/config/key_texts.h"

// The tables of the keys of `training`, `distributed` and `output`, and of the keys of `data` about reading
// samples. The other keys of `data` are in app/data/data_options.h, and those of `model` in models/zoo.
namespace plexaura {

// The largest batch size that a configuration may have. Products of it with ranks or samples fit in 64 bits.
inline constexpr std::int64_t largest_batch = std::int64_t{1} << 31;

// The largest number of epochs that a configuration may have.
inline constexpr std::int64_t most_epochs = 1'000'000'000;

// The value of training.precision.
struct PrecisionInput {
  ArenaTypes types = {};
  bool is_auto = false;
  bool operator==(const PrecisionInput&) const = default;
};

// Values of the section `training` from which several options are computed.
struct TrainingInput {
  std::int64_t samples = 0;  // number of samples of an epoch; 0: it is not known, or does not matter
  int ranks = 1;
  std::optional<std::int64_t> batch_size = {};  // number of samples of a step over all ranks
  std::optional<std::int64_t> batch_per_rank = {};
  double learning_rate = 0;  // learning rate for a batch of base_batch_size
  std::int64_t base_batch_size = 1;
  PrecisionInput precision = {};
  std::vector<Section> groups = {};  // sections of `groups`, which group_keys() reads
  ScheduleInput schedule = {};
  std::optional<std::string> goal_metric = {};  // metric of the goal; empty: no epochs are compared
  std::optional<std::string> goal_mode = {};    // "min" or "max"; empty: the metric's name decides
  std::optional<std::int64_t> patience = {};    // patience of the goal
  std::optional<std::string> memory = {};       // the most bytes of a step, as bytes_of() reads it

  // Returns the number of samples of a step over all ranks. Returns nothing if neither or both keys are
  // given.
  std::optional<std::int64_t> samples_of_batch() const;
  // Returns samples_of_batch(), or largest_batch if that returns nothing; limited to the number of training samples, if
  // that is known.
  std::int64_t samples_of_step() const;
};

// Each of these functions returns a table of keys. Reading the keys sets members of the function's arguments.
std::vector<Key> training_keys(TrainingInput& input, RunOptions& run);
// Returns the keys of `optimizer` in `training`.
std::vector<Key> optimizer_keys(TrainingInput& input, OptimizerSpec& optimizer);
// Returns the keys of one element of training.optimizer.groups. `rule` is filled from its inner section
// `optimizer`; null if it has none.
std::vector<Key> group_keys(ParameterGroup& group, OptimizerSpec* rule);
std::vector<Key> reading_keys(TrainerOptions& trainer);
std::vector<Key> distributed_keys(RunOptions& run);
std::vector<Key> output_keys(TrainerOptions& trainer);

// Returns the descriptions of all keys of a configuration.
std::vector<KeyText> all_key_texts();

// Returns the output of --describe: the keys of a section such as "training.optimizer", or one key; all keys
// for an empty path. Throws UserError if there is no such key or section.
std::string describe_keys(const std::string& path);

}  // namespace plexaura

#include "app/choices/kernel_choice.h"

#include <fmt/format.h>

#include "training/checkpoints/checkpoint.h"
#include "training/checkpoints/kernel_times.h"

namespace plexaura {

namespace {

// Returns the tuning of this run. A resumed run does not measure kernels again if the checkpoint contains
// their times.
Tuning tuning_of(const RunOptions& options, const std::string& resumed_times) {
  return options.tuning == Tuning::measure && !resumed_times.empty() ? Tuning::cached : options.tuning;
}

}  // namespace

Tuning tuning_of_rank_0(Collective& ranks, Tuning mine, std::string_view what) {
  return static_cast<Tuning>(
      std::stoi(ranks.gather_all(std::to_string(static_cast<int>(mine)), what).front()));
}

KernelChoice kernel_choice(Collective& ranks, const CommandLine& line, const RunOptions& options) {
  const bool decides = ranks.rank() == 0;
  const std::string resumed =
      line.resume && decides ? kernel_times_of_newest(options.trainer.output) : std::string();
  const Tuning tuning = tuning_of_rank_0(ranks, tuning_of(options, resumed), "how kernels are chosen");
  if (tuning == Tuning::off) return {};
  KernelChoice choice{std::make_unique<Tuner>(tuning), {}};
  if (!decides) return choice;
  choice.remark = load_kernel_times(kernel_times_file(), *choice.tuner);
  if (!resumed.empty()) choice.tuner->add(resumed);
  return choice;
}

std::string keep_kernel_choice(const Tuner& tuner) {
  if (tuner.measured() == 0)
    return tuner.used() == 0
               ? ""
               : fmt::format("chose the kernels of {} regions by times that were measured before",
                             tuner.used());
  const std::string failure = save_kernel_times(kernel_times_file(), tuner);
  return fmt::format(
      "measured the kernels of {} regions in {:.1f} s; {}", tuner.measured(), tuner.seconds_spent(),
      failure.empty() ? fmt::format("their times are kept in '{}'", kernel_times_file().string()) : failure);
}

}  // namespace plexaura

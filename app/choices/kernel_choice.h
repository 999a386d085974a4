#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "core/compile/tuner.h"
#include "core/exchange/collective.h"

namespace plexaura {

// Returns the tuning of rank 0, which all ranks use. Collective; `what` names the call.
Tuning tuning_of_rank_0(Collective& ranks, Tuning mine, std::string_view what);

// The result of kernel_choice().
struct KernelChoice {
  std::unique_ptr<Tuner> tuner;  // measures kernels; null: estimates choose the kernels
  std::string remark;            // a sentence about times that cannot be read; empty if there is no problem
};

// Makes the tuner that chooses kernels as training.tuning says. It knows the times that earlier runs have
// stored, and those of the checkpoint from which the run resumes, which take precedence. All ranks use the
// tuning and the times of rank 0. Collective.
KernelChoice kernel_choice(Collective& ranks, const CommandLine& line, const RunOptions& options);

// Stores the measured times for later runs. Returns a sentence that says how kernels were chosen and how long
// that took, or an empty text if there was nothing to choose. Called by rank 0.
std::string keep_kernel_choice(const Tuner& tuner);

}  // namespace plexaura

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

// What a run chooses its kernels by: training.tuning, the times that earlier runs have kept, and those of the
// checkpoint that the run goes on from, which go before. Of rank 0, whose word counts. All ranks together.
struct KernelChoice {
  std::unique_ptr<Tuner> tuner;  // null: estimates choose
  std::string remark;            // a sentence about times that cannot be read; empty where all is well
};
KernelChoice kernel_choice(Collective& ranks, const CommandLine& line, const RunOptions& options);

// Keeps what was measured, and says in one sentence by what kernels were chosen, and how long that took; empty
// where there was nothing to choose. Of rank 0.
std::string keep_kernel_choice(const Tuner& tuner);

}  // namespace plexaura

#pragma once

#include "app/options/command_line.h"
#include "app/setup.h"
#include "core/compile/program.h"
#include "distributed/communicator/communicator.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// The objects of a run that has ended, for its report.
struct EndedRun {
  const CommandLine& line;
  const Setup& setup;
  const TrainingResult& result;
  ParameterStore& store;
  Backend& backend;
  const Program& largest;  // the gradient program of the largest micro-batch
};

// Collective. Rank 0 writes the facts of a run to the folder of --report: its figures, memory, the worst
// samples of validation as pictures, the confusions, and examples of augmented training samples. If a part
// cannot be made, a sentence with the reason takes its place. The other ranks wait. Throws UserError on all
// ranks if the file cannot be written.
void write_report(Communicator& ranks, const EndedRun& run);

}  // namespace plexaura

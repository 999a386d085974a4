#pragma once

#include "app/options/command_line.h"
#include "app/setup.h"
#include "distributed/communicator/communicator.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Returns the command line without --log, --tensorboard and --report: the check must not touch the files of
// these options.
CommandLine without_records(CommandLine line);

// Collective. Runs the mode --check, which tries once all that a run needs. It reads samples, validates with
// some of them, makes a few steps, saves a checkpoint, loads it again and compares the bits, and writes the
// records of the command line. Rank 0 prints a line for each of these parts, and how long an epoch is going
// to take. All files are written to temporary folders next to the places that the run would write to, or,
// without output.dir, in the folder of temporary files, and removed. `parts` are those of a run, and their
// validation is replaced. Throws UserError for the first part that does not work. TrainingResult::signal is the
// signal that ended the check, if there was one.
TrainingResult check_run(Communicator& ranks, const CommandLine& line, Setup& setup, TrainerParts parts);

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <string>

#include "app/options/command_line.h"

namespace plexaura {

// Tries now whatever a run is to write later, so that a bad place is not found after hours of training:
// `checkpoints`, a folder or empty, and the files of --log and --profile. Throws UserError where one cannot
// be written, where it holds something else than an older log or trace, which would be lost, where it is a
// pipe, for whose reader the run would wait, and where both are one file. Also, without --resume and --replace, where the
// newest checkpoint has made fewer updates than the `last_step` of this run: it may be of a run that was to go on, and
// would be removed.
void prepare_outputs(const CommandLine& line, const std::string& checkpoints, std::int64_t last_step);

}  // namespace plexaura

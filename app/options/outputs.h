#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/options/command_line.h"

namespace plexaura {

// The name of the file, in the folder of --report, with the facts of a run. It is written at the end of the
// run, and `tools/runs report FOLDER` makes FOLDER/report.html from it and from the log. report_begin is the
// beginning of its text.
inline constexpr const char* report_facts = "report.json";
inline constexpr const char* report_begin = R"({"format":"plexaura report 1)";

// Checks whether the files and folders of the options would replace something that a run has not written, or a
// checkpoint. Makes and changes nothing. Throws UserError as prepare_outputs() does.
void check_outputs(const CommandLine& line, const std::string& checkpoints);

// Makes the folder of an option and those above it. Throws UserError if that fails.
void make_output_folder(const char* option, const std::filesystem::path& folder);

// Checks at the start all outputs that a run will write, so that a wrong place is not found after hours of
// training: `checkpoints`, a folder or empty, the files of --log and --profile, and the folders of
// --tensorboard and --report, of which the latter is made. Throws UserError if checkpoints, the profile or the
// report cannot be written, if an output contains something other than an older log or trace, which would be lost,
// and if it is a pipe, whose reader could block the run. Also throws if --log and --profile name one file. Without
// --resume and --replace it also throws if the newest checkpoint has fewer updates than the `last_step` of this run:
// it may belong to a run that the user wants to resume, and would be removed.
void prepare_outputs(const CommandLine& line, const std::string& checkpoints, std::int64_t last_step);

}  // namespace plexaura

#include "app/options/outputs.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

#include "core/base/profile.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/file.h"
#include "training/files/folder_lock.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

// The beginning of a log that this program writes, and of a trace.
constexpr std::string_view log_begin = R"({"event":)";
constexpr std::string_view trace_begin = R"({"traceEvents":)";

bool begins_with(const fs::path& path, std::string_view wanted) {
  const InputFile file(path);
  std::string begin(std::min<std::size_t>(wanted.size(), file.bytes()), '\0');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return wanted.starts_with(begin);  // the file may hold an incomplete beginning, left by a killed run
}

void check_replaceable(const char* option, const std::string& path, std::string_view begin) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_fifo(status) || fs::is_socket(status))
    throw UserError(fmt::format("{}: '{}' is a pipe; name a regular file", option, path));
  if (fs::is_regular_file(status) && !begins_with(path, begin))
    throw UserError(
        fmt::format("{0}: '{1}' exists and contains something other than what {0} writes; name another "
                    "file, so that it stays as it is",
                    option, path));
}

bool is_one_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error))
    return fs::is_regular_file(a) && fs::equivalent(a, b, error);
  return fs::weakly_canonical(fs::absolute(a, error), error) ==
         fs::weakly_canonical(fs::absolute(b, error), error);
}

// Throws if a file of an option lies at a path that a new checkpoint would replace.
void check_apart(const char* option, const std::string& path, const std::string& checkpoints) {
  if (path.empty() || checkpoints.empty()) return;
  std::error_code error;
  const fs::path inside =
      fs::weakly_canonical(fs::absolute(path, error), error)
          .lexically_relative(fs::weakly_canonical(fs::absolute(checkpoints, error), error));
  if (!inside.empty() && is_reserved_in_checkpoints(*inside.begin()))
    throw UserError(fmt::format(
        "{}: '{}' is at a place that output.dir keeps for checkpoints; name another file", option, path));
}

// Throws if an earlier run was stopped and neither --resume nor --replace is given: a scheduler may have
// started the same command again. If the earlier run still lives, its lock causes another error.
void check_earlier_run(const CommandLine& line, const std::string& folder, std::int64_t last_step) {
  if (line.resume || line.replace || is_locked(fs::path(folder) / FolderLock::file_name)) return;
  const auto newest = newest_step(folder);
  if (!newest || *newest >= last_step) return;
  throw UserError(fmt::format(
      "output.dir is {}, where an earlier run has stopped after step {}: give --resume to continue "
      "from there, or --replace to start anew and remove its checkpoints, or name another folder",
      folder, *newest));
}

// Makes the folder of --report, and a file of facts if there is none.
void prepare_report(const fs::path& folder) {
  make_output_folder("--report", folder);
  std::error_code error;
  if (fs::exists(folder / report_facts, error)) return;
  AtomicFile file(folder / report_facts);
  file.write(std::string(report_begin) + "\"}\n");
  file.commit();
}

}  // namespace

void make_output_folder(const char* option, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("{}: the folder '{}' cannot be made: {}; name another one", option,
                                folder.string(), error.message()));
}

void check_outputs(const CommandLine& line, const std::string& checkpoints) {
  check_apart("--log", line.log, checkpoints);
  check_apart("--profile", line.profile, checkpoints);
  check_apart("--tensorboard", line.tensorboard, checkpoints);
  check_apart("--report", line.report, checkpoints);
  if (!line.report.empty())
    check_replaceable("--report", (fs::path(line.report) / report_facts).string(), report_begin);
  if (!line.log.empty()) check_replaceable("--log", line.log, log_begin);
  if (!line.profile.empty()) check_replaceable("--profile", line.profile, trace_begin);
  if (!line.log.empty() && !line.profile.empty() && is_one_file(line.log, line.profile))
    throw UserError(fmt::format("--log and --profile name one file, '{}'; name two", line.log));
}

void prepare_outputs(const CommandLine& line, const std::string& checkpoints, std::int64_t last_step) {
  check_outputs(line, checkpoints);
  if (!checkpoints.empty()) {
    prepare_checkpoints(checkpoints);
    check_earlier_run(line, checkpoints, last_step);
  }
  if (!line.profile.empty()) TraceFile(line.profile).finish();
  if (!line.report.empty()) prepare_report(line.report);
}

}  // namespace plexaura

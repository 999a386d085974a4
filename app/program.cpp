#include "app/program.h"

#include <csignal>
#include <fmt/format.h>

#include "app/begin_events.h"
#include "app/check_model_gradients.h"
#include "app/choices/shared_cores.h"
#include "app/options/distributed_config.h"
#include "app/report/console.h"
#include "app/setup.h"
#include "app/spares.h"
#include "app/train_or_serve.h"
#include "app/use_model.h"
#include "app/visiting.h"
#include "backends/cpu/threads.h"
#include "core/base/print.h"
#include "distributed/communicator/handshake.h"
#include "distributed/communicator/run_ranks.h"
#include "distributed/wire/launcher.h"
#include "training/loop/signals.h"

namespace plexaura {

namespace {

void check_alone(const CommandLine& line, const Communicator& ranks) {
  if (!line.device.empty() && ranks.size() > 1)
    throw UserError(fmt::format(
        "--device plans for one rank, and there are {}; start the program without mpirun", ranks.size()));
  if (line.check_gradients && ranks.size() > 1)
    throw UserError("--check-gradients is for one rank; start the program without mpirun");
}

// The options that a program needs before there are ranks.
struct Beginning {
  CommunicatorOptions communicator = {};
  std::filesystem::path output = {};  // folder of checkpoints of a run that trains
};

// Reads a Beginning from the command line and the file. Ignores errors, because they are reported later, when there are
// ranks.
Beginning read_beginning(const std::string& kind, int argc, const char* const* argv) {
  Beginning beginning;
  try {
    const CommandLine line = parse_command_line(kind, argc, argv);
    if (!line.message.empty()) return {};
    const Config config = Config::load(line.config, line.set);
    const RunOptions run = read_distributed_alone(config);
    beginning.communicator = run.communicator;
    beginning.communicator.outlive_ranks = run.on_loss != OnLoss::end;
    if (!line.dry_run && !line.check_gradients && trial_of(line) == nullptr && !uses_model(line) &&
        line.join.empty())
      beginning.output = read_output_folder(config);
  } catch (const Error&) {
    return {};
  }
  return beginning;
}

// Does the work of one rank. Returns the exit status.
int run_rank(const std::string& kind, int argc, const char* const* argv, Communicator& ranks) {
  const CommandLine line = together(ranks, "reading the command line", [&] {
    CommandLine read = parse_command_line(kind, argc, argv);
    check_alone(read, ranks);
    return read;
  });
  check_agreement(ranks, {{"--help, --version or --describe", line.message.empty() ? "not given" : "given"}});
  if (!line.message.empty()) {
    together(ranks, "printing", [&] {
      if (ranks.rank() == 0) print_output(line.message + "\n");
    });
    return 0;
  }
  const int spares = read_spares(ranks);
  const int computing = ranks_that_compute_here(ranks, spares);
  together(ranks, "choosing the threads", [&] { use_cores(computing, launcher_process()); });
  Setup setup = read_setup(kind, line, ranks, spares);
  check_agreement(ranks, facts_of(setup, line));
  together(ranks, "reading the configuration",
           [&] { check_spares(spares, line, ranks, *setup.config, setup.options); });
  if (!line.serve.empty())
    return serve_visitors(line, setup.options, make_store_of(setup), ranks.deadline_seconds());
  if (line.check_gradients) return check_model_gradients(line, std::move(setup));
  if (uses_model(line)) return use_model(line, ranks, setup.data, setup.options, *setup.model);
  return train_or_serve(line, ranks, std::move(setup), spares);
}

}  // namespace

int run_program(const std::string& kind, int argc, const char* const* argv) {
  reserve_standard_streams();
  // Writing beyond a limit on file sizes then fails like writing to a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // the run then continues if the reader of its output ends, as head does
  StopSignals::end_process();
  const Beginning beginning = read_beginning(kind, argc, argv);
  const std::unique_ptr<EventFile> events = begin_events(beginning.output);
  RankSession session;
  try {
    return session.end(run_rank(kind, argc, argv, session.open(beginning.communicator)));
  } catch (const std::exception& error) {
    return session.fail(error);
  }
}

}  // namespace plexaura

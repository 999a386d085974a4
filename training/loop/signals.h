#pragma once

namespace plexaura {

// While an object of this class lives, the first signal that asks this process to end is recorded instead of ending
// it. SIGINT and SIGTERM are such signals. So are SIGUSR2, which counts as SIGINT, and SIGUSR1, which counts as
// SIGTERM; mpirun passes both on to the ranks of all hosts. SIGXCPU and SIGHUP (unless it is ignored) count as SIGTERM.
// If the same signal comes again, the process ends at once, and with it the commands of CommandOutput. A different
// signal does not end it, because a batch system may warn with one signal and end the job with another. A repeated
// SIGHUP or SIGXCPU does not end it either, because the system repeats these by itself. A second object has no
// effect while the first one lives.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Lets all of these signals end the process as SIGINT or SIGTERM would, while no object lives. Called at
  // the start of a program.
  static void end_process();

  // Returns the signal that was recorded, SIGINT or SIGTERM; 0 if none was. It stays until the next object is made. Any
  // thread may call it.
  static int received();
};

}  // namespace plexaura

#pragma once

namespace plexaura {

// While it lives, the first signal that asks this process to end is noted instead. These are SIGINT and SIGTERM; SIGUSR2 and
// SIGUSR1, which count as these: mpirun passes them on to the ranks of all hosts; SIGHUP, unless it is ignored, and SIGXCPU,
// which count as SIGTERM. The same one again ends the process at once, but not another one: a batch system may warn with one,
// and end the job with another. Nor do SIGHUP and SIGXCPU, which the system repeats by itself. One that is made while another lives
// changes nothing.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Where none lives, all of these signals end the process as SIGINT and SIGTERM do. To be called at the start of a program.
  static void end_process();

  // SIGINT or SIGTERM, as the outermost one has noted it, 0 for none. Any thread, and afterwards, too.
  static int received();
};

}  // namespace plexaura

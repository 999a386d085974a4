#pragma once

namespace plexaura {

// While it lives, the first SIGINT or SIGTERM of this process is noted instead of ending it; a second one, of
// either kind, ends it at once. SIGUSR2 and SIGUSR1 count as these: mpirun passes them on to the ranks of all hosts,
// and so tools/run sends them (tools/run_parts/job.py). One that is made while another lives changes nothing.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // SIGINT or SIGTERM, as the outermost one has noted it, 0 for none. Any thread, and afterwards, too.
  static int received();
};

}  // namespace plexaura

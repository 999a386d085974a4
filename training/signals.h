#pragma once

namespace plexaura {

// While it lives, the first SIGINT or SIGTERM of this process is noted instead of ending it; a second one, of
// either kind, ends it at once. One that is made while another lives changes nothing.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of the signal that the outermost one has noted, 0 for none. Any thread, and afterwards, too.
  static int received();
};

}  // namespace plexaura

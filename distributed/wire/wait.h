#pragma once

#include <chrono>

namespace plexaura {

// One wait for another rank: its deadline, and how it passes the time. Spins for a few microseconds (the
// other rank is usually about to come), then yields, then naps, and longer after a second, so that ranks which
// share cores do not starve each other. Used by one thread.
class Wait {
 public:
  explicit Wait(double deadline_seconds);

  void pause();
  bool expired() const { return now() >= end_; }
  // Every few milliseconds: that it is time to look at what else may have happened. Not counted in pauses, for where cores
  // are scarce one of them may last as long.
  bool is_time_to_look();
  // Something moved: the deadline counts from now, and pausing begins with spinning again.
  void progressed();

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point now() { return Clock::now(); }

  Clock::duration patience_;
  Clock::time_point end_ = now() + patience_;
  Clock::time_point look_at_;
  int pauses_ = 0;
};

}  // namespace plexaura

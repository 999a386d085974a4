#pragma once

#include <chrono>

namespace plexaura {

// One wait for another rank: its deadline, and its pauses. It spins for a few microseconds, because the other
// rank usually comes soon, then yields, then sleeps, and sleeps longer after a second, so that ranks that
// share cores do not starve each other. Only one thread may use it.
class Wait {
 public:
  explicit Wait(double deadline_seconds);

  void pause();
  bool expired() const { return now() >= end_; }
  // Returns true every 20 milliseconds, when the caller should look for other events. It measures time and
  // does not count pauses, because on a busy machine one pause may last as long.
  bool is_time_to_look();
  // Restarts the deadline and the pauses. Called after progress.
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

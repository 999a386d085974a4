#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/events.h"

namespace plexaura {

// A call that the watchdog observes.
struct WatchedCall {
  std::string what;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point deadline;
  bool is_helped = false;
};

// Ends the process if a call that cannot be interrupted (MPI_Init, MPI_Finalize) does not return. Such a call
// blocks its thread for ever, so another thread watches. That thread starts with the first guard, and sleeps
// until the earliest deadline. All functions may be called from any thread; the watchdog must outlive its
// guards.
class Watchdog {
 public:
  // Called once, on the watching thread, with a sentence about the overdue call: who waits, for which event,
  // and for how long.
  using Alarm = std::function<void(const std::string& sentence)>;

  // `who` is the beginning of the sentence, such as "process 4711".
  explicit Watchdog(std::string who, Alarm alarm = end_process);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void rename(std::string who);

  // Called on the watching thread if calls are overdue, at most once for each call. It may try to let them
  // return. They then have two more seconds before the Alarm is called.
  using Rescue = std::function<void()>;
  void set_rescue(Rescue rescue);

  // Prints the sentence on stderr, and ends the process with status 1, without running destructors.
  [[noreturn]] static void end_process(const std::string& sentence);

  // While an object lives, the watchdog observes the call `what` ("MPI_Finalize, where all ranks come together").
  class Guard {
   public:
    Guard(Watchdog& watchdog, std::string what, double deadline_seconds);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Watchdog& watchdog_;
    const std::string what_;
    std::list<WatchedCall>::iterator call_;
    EventSpan span_;
  };

 private:
  std::list<WatchedCall>::iterator begin(std::string what, double deadline_seconds);
  void watch();
  // Milliseconds until the next deadline, at most a minute; -1: no call is observed; needs the lock.
  int milliseconds_to_next() const;
  std::string overdue();  // the sentence for the Alarm, or ""; needs the lock
  Rescue take_rescue();   // the rescue function of a new overdue call, or an empty function; needs the lock
  void wake() const;

  std::mutex mutex_;
  std::string who_;
  Alarm alarm_;
  Rescue rescue_;
  std::list<WatchedCall> calls_;
  std::thread thread_;
  bool ending_ = false;
  int wake_descriptor_;
};

}  // namespace plexaura

#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/communicator/mailbox.h"

namespace plexaura {

// Letters leave and arrive only while a thread calls the message library. The thread of this object does so
// while the owner of a mailbox computes. One thread serves both directions, because a mailbox may be used by
// one thread at a time.
class MailDriver {
 public:
  // Drives letters with these tags. For each tag at most `most_arriving` letters arrive before somebody takes
  // them. The mailbox must outlive the driver. Throws DeviceError if the thread cannot be started.
  MailDriver(Mailbox& mailbox, std::vector<int> tags, std::int64_t most_arriving);
  MailDriver(const MailDriver&) = delete;
  MailDriver& operator=(const MailDriver&) = delete;

  // Locks the mailbox. Every user of the mailbox holds the lock during its call, also while it waits for a
  // letter. If an error has ended the thread, throws it, because letters would no longer leave.
  [[nodiscard]] std::unique_lock<std::mutex> hold();

 private:
  void run(const std::stop_token& stop);
  bool drive();

  Mailbox& mailbox_;
  std::vector<int> tags_;
  std::int64_t most_arriving_;
  std::mutex mutex_;            // guards the mailbox
  std::exception_ptr failure_;  // the error that has ended the thread
  std::jthread thread_;         // the last member, so that it is destroyed first
};

}  // namespace plexaura

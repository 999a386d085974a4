#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/communicator/mailbox.h"

namespace plexaura {

// Letters leave and arrive only while somebody calls the library that carries them: this thread does so as long as the
// owner of a mailbox computes. One thread for both directions, for a mailbox serves one at a time.
class MailDriver {
 public:
  // Drives letters with these tags, each up to so many that nobody has taken. The mailbox outlives this. DeviceError
  // where the thread cannot be started.
  MailDriver(Mailbox& mailbox, std::vector<int> tags, std::int64_t most_arriving);
  MailDriver(const MailDriver&) = delete;
  MailDriver& operator=(const MailDriver&) = delete;

  // Whoever uses the mailbox holds this meanwhile, also as long as it waits for a letter. Throws what has ended the thread,
  // if anything has: letters would not leave any more.
  [[nodiscard]] std::unique_lock<std::mutex> hold();

 private:
  void run(const std::stop_token& stop);
  bool drive();

  Mailbox& mailbox_;
  std::vector<int> tags_;
  std::int64_t most_arriving_;
  std::mutex mutex_;            // of the mailbox
  std::exception_ptr failure_;  // that has ended the thread
  std::jthread thread_;         // goes first
};

}  // namespace plexaura

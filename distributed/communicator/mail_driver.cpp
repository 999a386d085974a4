#include "distributed/communicator/mail_driver.h"

#include <chrono>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

// The pauses between two calls of the library while letters are under way, and otherwise.
constexpr std::chrono::microseconds short_nap{50};
constexpr std::chrono::milliseconds idle_nap{1};

}  // namespace

MailDriver::MailDriver(Mailbox& mailbox, std::vector<int> tags, std::int64_t most_arriving)
    : mailbox_(mailbox), tags_(std::move(tags)), most_arriving_(most_arriving) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& error) {
    throw DeviceError(fmt::format(
        "cannot start the thread that drives letters: {}; let the user of this run have more threads",
        error.what()));
  }
}

void MailDriver::run(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested())
      if (drive())
        std::this_thread::sleep_for(short_nap);
      else
        std::this_thread::sleep_for(idle_nap);
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
}

std::unique_lock<std::mutex> MailDriver::hold() {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return lock;
}

// Lets letters leave and arrive, and returns true if some are still under way. If another thread uses the mailbox now,
// does nothing and returns false.
bool MailDriver::drive() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  bool is_busy = false;
  if (lock)
    for (const int tag : tags_) is_busy = mailbox_.drive(tag, most_arriving_) || is_busy;
  return is_busy;
}

}  // namespace plexaura

#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/error.h"

namespace plexaura {

// Part of an object that serves one thread at a time: see InUse.
class BusyFlag {
 public:
  BusyFlag() = default;
  BusyFlag(BusyFlag&&) noexcept {}  // who moves an object does not use it
  BusyFlag& operator=(BusyFlag&&) noexcept { return *this; }

 private:
  friend class InUse;
  std::atomic<std::thread::id> user_ = std::thread::id();  // that of no thread: nobody
};

// One use of such an object, by the thread that makes this, until this goes.
class InUse {
 public:
  // Throws UserError while another use lasts: with the text `rule` if it is another thread's. If it is this thread's own, the
  // error says so of the object, which `name` calls "a VM".
  InUse(BusyFlag& flag, std::string_view name, std::string_view rule) : flag_(flag) {
    std::thread::id user;
    if (flag.user_.compare_exchange_strong(user, std::this_thread::get_id(), std::memory_order_acquire))
      return;
    throw UserError(user == std::this_thread::get_id() ? within_itself(name) : std::string(rule));
  }
  ~InUse() { flag_.user_.store({}, std::memory_order_release); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  static std::string within_itself(std::string_view name) {
    return std::string(name) +
           " was called from within another call of itself, by what that call runs (a kernel, a model or a "
           "host point); call it when the first call has returned";
  }

  BusyFlag& flag_;
};

}  // namespace plexaura

#pragma once

#include <atomic>
#include <concepts>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/error.h"

namespace plexaura {

// Member of an object that only one thread may use at a time: see InUse.
class BusyFlag {
 public:
  BusyFlag() = default;
  BusyFlag(BusyFlag&&) noexcept {}  // a moved object is not in use
  BusyFlag& operator=(BusyFlag&&) noexcept { return *this; }

 private:
  friend class InUse;
  std::atomic<std::thread::id> user_ = std::thread::id();  // default value: the object is not in use
};

// Marks such an object as used by the calling thread, until this is destroyed.
class InUse {
 public:
  // Throws UserError if the object is in use already: with the text `rule` if another thread uses it. If the
  // calling thread itself uses it, the message says that the object, which `name` describes ("a VM"), was
  // called from within itself.
  InUse(BusyFlag& flag, std::string_view name, std::string_view rule)
      : InUse(flag, name, [&] { return std::string(rule); }) {}
  // The same with a function that makes the text, which is called only for an error.
  template <std::invocable Rule>
  InUse(BusyFlag& flag, std::string_view name, const Rule& rule) : flag_(flag) {
    std::thread::id user;
    if (flag.user_.compare_exchange_strong(user, std::this_thread::get_id(), std::memory_order_acquire))
      return;
    throw UserError(user == std::this_thread::get_id() ? within_itself(name) : rule());
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

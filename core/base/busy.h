#pragma once

#include <atomic>
#include <concepts>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/error.h"

namespace plexaura {

// Records which thread uses an object. A class has this member if only one thread may use an object of it at
// a time. See InUse.
class BusyFlag {
 public:
  BusyFlag() = default;
  BusyFlag(BusyFlag&&) noexcept {}  // the new object is not in use, even if the moved one is
  BusyFlag& operator=(BusyFlag&&) noexcept { return *this; }

 private:
  friend class InUse;
  std::atomic<std::thread::id> user_ = std::thread::id();  // the default id means: not in use
};

// Marks the object of a BusyFlag as used by the calling thread while this InUse lives.
class InUse {
 public:
  // Throws UserError if the object is already in use. If another thread uses it, the text is `rule`. If the
  // calling thread itself uses it, the text says that the object was called from within itself; `name`
  // describes the object ("a VM").
  InUse(BusyFlag& flag, std::string_view name, std::string_view rule)
      : InUse(flag, name, [&] { return std::string(rule); }) {}
  // Does the same as the other constructor, but makes the text by calling `rule`, and only for an error.
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

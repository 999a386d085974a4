#pragma once

#include <atomic>

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
  std::atomic<bool> busy_ = false;
};

// One use of such an object, by the thread that makes this, until this goes.
class InUse {
 public:
  // Throws UserError with the text `rule` while another use lasts.
  InUse(BusyFlag& flag, const char* rule) : flag_(flag) {
    if (flag.busy_.exchange(true, std::memory_order_acquire)) throw UserError(rule);
  }
  ~InUse() { flag_.busy_.store(false, std::memory_order_release); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  BusyFlag& flag_;
};

}  // namespace plexaura

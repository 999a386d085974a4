#pragma once

#include <sys/resource.h>

#include "tests/support/sanitized.h"

namespace plexaura::testing {

// The sanitizer of undefined behaviour opens a pipe to look at the type of an object. Without descriptors it
// reports objects that are sound.
inline constexpr bool can_lack_descriptors = !address_sanitized;

// While it lives, this process can open no file: "Too many open files".
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &old_limit_);
    const rlimit limit{0, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &old_limit_); }

 private:
  rlimit old_limit_{};
};

}  // namespace plexaura::testing

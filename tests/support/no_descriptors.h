#pragma once

#include <sys/resource.h>

#include "tests/support/sanitized.h"

namespace plexaura::testing {

// The sanitizer of undefined behaviour opens a pipe to check the type of an object. Without descriptors it
// reports valid objects.
inline const bool can_lack_descriptors = !address_sanitized;

// For its lifetime, this process cannot open a file: "Too many open files".
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

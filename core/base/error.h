#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/export.h"

namespace plexaura {

// The base of all errors of Plexaura. The class says who can correct the cause: the user (a wrong shape, a
// wrong key, a missing file), the device (out of memory, a failed kernel, a lost rank), or the developers (a
// broken invariant). The text is one sentence that names the place, what is wrong, the rule, and what to do.
class PLEXAURA_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
  // Returns the exit status of a program that ends with this error: 2 for an error of the user, otherwise 1.
  virtual int exit_status() const noexcept { return 1; }
};

class PLEXAURA_API UserError : public Error {
 public:
  using Error::Error;
  ~UserError() override;
  int exit_status() const noexcept override { return 2; }
};

class PLEXAURA_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

class PLEXAURA_API InternalError : public Error {
 public:
  using Error::Error;
  ~InternalError() override;
};

// A second base of the error that a device throws if it has less memory than was requested. A caller that
// catches it and knows the purpose of the memory throws an error with fact() and better advice.
class PLEXAURA_API OutOfMemory {
 public:
  explicit OutOfMemory(std::string fact) : fact_(std::move(fact)) {}
  virtual ~OutOfMemory();
  // Returns the error's text without advice.
  const std::string& fact() const noexcept { return fact_; }

 private:
  std::string fact_;
};

template <class Kind>
class OutOfMemoryError final : public Kind, public OutOfMemory {
 public:
  explicit OutOfMemoryError(const std::string& fact, const std::string& advice = "use a smaller batch")
      : Kind(fact + "; " + advice), OutOfMemory(fact) {}
};

}  // namespace plexaura

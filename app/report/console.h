#pragma once

#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Reserves the numbers of standard streams that were closed when the program started (`mlp iris.yaml >&-`),
// so that no file which the program opens gets one of them, and messages for the user with it.
void reserve_standard_streams();

// The output that the user reads. It waits for a slow reader. After a signal has asked the program to end
// (see StopSignals), it does not wait for a reader that has stopped reading, as mpirun does when it ends its
// ranks: text that cannot be written then is lost.
class Console {
 public:
  // `output`: a descriptor that stays open while this object lives.
  explicit Console(int output);

  void print(std::string_view text);

  // Returns the errno of the error by which text was lost, as on a full disk; 0 if there is none. A reader
  // that has ended and an output that was closed from the start are no errors.
  int failure() const { return failure_; }

 private:
  int output_;
  FileDescriptor unblocked_;  // the same terminal or pipe; none for a file, or if it cannot be opened
  bool given_up_ = false;
  int failure_ = 0;
};

}  // namespace plexaura

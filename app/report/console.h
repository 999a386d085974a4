#pragma once

#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Opens the standard streams that were closed when the program started (`mlp iris.yaml >&-`). Otherwise a
// file that the program opens would get the number of such a stream, and messages for the user would be
// written to that file.
void reserve_standard_streams();

// The output that the user reads. It waits for a slow reader. After a signal has asked the program to end
// (see StopSignals), it no longer waits for a reader that has stopped reading, and drops text that cannot be
// written. mpirun is such a reader when it ends its ranks.
class Console {
 public:
  // `output` is a file descriptor that stays open while this object lives.
  explicit Console(int output);

  void print(std::string_view text);

  // Returns the errno of the error by which text was lost, such as a full disk; 0 if there was none. It is no
  // error if a reader has ended, or if the output was closed from the start.
  int failure() const { return failure_; }

 private:
  int output_;
  // The terminal or pipe of `output`, opened again without blocking; none for a file, or if it cannot be opened.
  FileDescriptor unblocked_;
  bool given_up_ = false;
  int failure_ = 0;
};

}  // namespace plexaura

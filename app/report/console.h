#pragma once

#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Takes the numbers of the standard streams that the program was started without (`mlp iris.yaml >&-`), so
// that no file which it opens gets one of them, and with it what is said to a person.
void reserve_standard_streams();

// Where a person reads what the program says. A reader that is slow is waited for; but once a signal has
// asked the program to end (see StopSignals) it must not be held up by one that has stopped reading, as
// mpirun has when it ends its ranks: what finds no room then is lost.
class Console {
 public:
  // `output`: a descriptor that stays open while this lives.
  explicit Console(int output);

  void print(std::string_view text);

  // The system's number of the error by which text was lost, as on a full disk; 0 for none. That a reader has left, or
  // that the output was closed from the beginning, is no error.
  int failure() const { return failure_; }

 private:
  int output_;
  FileDescriptor unblocked_;  // the same terminal or pipe; none for a file, and where it cannot be had
  bool given_up_ = false;
  int failure_ = 0;
};

}  // namespace plexaura

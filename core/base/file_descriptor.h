#pragma once

#include "core/base/export.h"

namespace plexaura {

// Owns a file descriptor of the operating system, of a file or a socket, and closes it in the destructor. The
// descriptor is negative if the object owns none. Only one thread at a time may move or close it.
class PLEXAURA_API FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int number() const { return number_; }
  bool is_there() const { return number_ >= 0; }
  // Closes the descriptor now. Returns false, with errno set, if close(2) fails: earlier writes may be lost, or
  // the object owned no descriptor.
  bool close();

 private:
  int number_ = -1;
};

}  // namespace plexaura

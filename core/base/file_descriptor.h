#pragma once

#include "core/base/export.h"

namespace plexaura {

// A descriptor of the operating system, of a file or a socket, closed with the object; below 0 where there is none. One
// thread at a time moves or closes it.
class PLEXAURA_API FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int number() const { return number_; }
  bool is_there() const { return number_ >= 0; }
  // Closes now; false (with errno set) where the system reports that earlier writes were lost.
  bool close();

 private:
  int number_ = -1;
};

}  // namespace plexaura

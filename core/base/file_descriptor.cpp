#include "core/base/file_descriptor.h"

#include <unistd.h>
#include <utility>

namespace plexaura {

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (is_there()) ::close(number_);
}

bool FileDescriptor::close() { return ::close(std::exchange(number_, -1)) == 0; }

}  // namespace plexaura

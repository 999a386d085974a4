#pragma once

#include <unistd.h>
#include <utility>

namespace plexaura {

// A descriptor of a file or a socket, closed with the object; below 0 where it has none.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int number) : number_(number) {}
  OwnDescriptor(OwnDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnDescriptor() {
    if (number_ >= 0) close(number_);
  }

  int number() const { return number_; }
  bool is_there() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace plexaura

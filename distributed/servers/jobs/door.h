#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/base/file_descriptor.h"

namespace plexaura {

// The socket at which a server listens, and what is to be said of those who come there without the key. It lets nobody in while
// the process has few descriptors left: the server needs some for its checkpoints.
class Door {
 public:
  using Warn = std::function<void(const std::string& sentence)>;
  Door(FileDescriptor listener, Warn warn);

  int listener() const { return listener_.number(); }
  // Whether the process has descriptors for one more.
  bool is_open() const;
  // To be called where it stays shut. Says so, but no more than once a minute.
  void tell_that_shut();
  bool is_somebody_waiting() const;

  struct Newcomer {
    FileDescriptor socket;  // none where nobody waits, or it is shut
    std::string from;       // its address
  };
  Newcomer let_in();

  // Says at once that somebody was turned away, and of those that follow within a minute only how many they were.
  void note_turned_away(const std::string& from, const std::string& why);
  // To be called now and then, and at the end.
  void tell_of_turned_away(bool is_at_end);

 private:
  FileDescriptor listener_;
  Warn warn_;
  double told_shut_at_;          // seconds
  double told_turned_away_at_;   // seconds
  std::size_t turned_away_ = 0;  // of whom nothing was said yet
  std::string last_;             // one of them, and why
};

}  // namespace plexaura

#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/base/file_descriptor.h"

namespace plexaura {

// The socket at which a server listens. It also reports clients that come without the key. It accepts no connection while the process
// has few descriptors left, because the server needs some for its checkpoints.
class Door {
 public:
  using Warn = std::function<void(const std::string& sentence)>;
  Door(FileDescriptor listener, Warn warn);

  int listener() const { return listener_.number(); }
  // True if the process has descriptors for another connection.
  bool is_open() const;
  // Called while it is shut. Warns of it, at most once a minute.
  void report_shut();
  bool is_somebody_waiting() const;

  struct Newcomer {
    FileDescriptor socket;  // none if nobody waits, or if the door is shut
    std::string from;       // its address
  };
  Newcomer let_in();

  // Warns at once that a client was turned away. Counts those that follow within a minute, for the next warning.
  void note_turned_away(const std::string& from, const std::string& why);
  // Called regularly and at the end. Warns of those that were counted.
  void report_turned_away(bool is_at_end);

 private:
  FileDescriptor listener_;
  Warn warn_;
  double told_shut_at_;          // seconds
  double told_turned_away_at_;   // seconds
  std::size_t turned_away_ = 0;  // clients that no warning has counted yet
  std::string last_;             // the last of them, and why
};

}  // namespace plexaura

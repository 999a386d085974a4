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
  // Called while the door is shut. Warns about that, at most once a minute.
  void report_shut();
  bool is_somebody_waiting() const;

  struct Newcomer {
    FileDescriptor socket;  // socket of the connection; none if no client waits, or if the door is shut
    std::string from;       // address of the client
  };
  Newcomer let_in();

  // Warns that a client was turned away. If there was such a warning within the last minute, only counts the
  // client for the next warning.
  void note_turned_away(const std::string& from, const std::string& why);
  // Warns about the counted clients, if there are any and the minute is over or `is_at_end` is true. Called regularly and
  // at the end.
  void report_turned_away(bool is_at_end);

 private:
  FileDescriptor listener_;
  Warn warn_;
  double told_shut_at_;          // time of the last report_shut() that warned, in seconds
  double told_turned_away_at_;   // time of the last warning about a client, in seconds
  std::size_t turned_away_ = 0;  // clients that no warning has counted yet
  std::string last_;             // address of the last client that was turned away, and the reason
};

}  // namespace plexaura

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>

#include "core/base/file_descriptor.h"

namespace plexaura {

// A command of the shell whose standard output is read. Its standard input is empty, and its standard error output is that
// of this process. It runs in a process group of its own, so that a signal to this process does not end it. At most 64
// commands run at the same time.
class CommandOutput {
 public:
  // Starts the command with /bin/sh. Throws UserError if no process can be started, and DeviceError if 64 commands run
  // already or no pipe can be made.
  explicit CommandOutput(std::string command);
  CommandOutput(const CommandOutput&) = delete;
  CommandOutput& operator=(const CommandOutput&) = delete;
  // Ends the command, with the processes of its group, if it is still running. Kills processes that have not ended a
  // second after the request.
  ~CommandOutput();

  // Asks all commands that are running to end, with the processes of their groups. A signal handler may call it.
  static void end_all() noexcept;

  // Waits for output, or for the end of the command. Returns false if there is neither, and `is_to_end` returns true. Asks
  // it ten times a second.
  bool wait(const std::function<bool()>& is_to_end) const;

  // Waits for output, and writes some of it to `into`. Returns the number of bytes, which is 0 when the command has ended
  // with status 0. Throws UserError if it has ended in another way, and DeviceError if the output or the status cannot be
  // read.
  std::size_t read(std::span<char> into);

 private:
  void check_status();

  std::string command_;
  FileDescriptor output_;
  pid_t process_ = -1;  // below 0: it has ended
  std::int64_t bytes_ = 0;
};

}  // namespace plexaura

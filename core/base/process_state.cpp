#include "core/base/process_state.h"

#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>

namespace plexaura {

// Reads /proc/PID/stat. There the process's number is followed by its name in brackets, and the name itself
// may contain spaces and brackets.
ProcessState process_state(int process) {
  std::string stat;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), stat, '\0');
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  ProcessState state;
  fields >> state.letter;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> state.start;
  return state;
}

}  // namespace plexaura

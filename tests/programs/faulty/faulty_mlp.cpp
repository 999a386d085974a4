// The program mlp with the faults of PLEXAURA_FAULTS: see faults.h.

#include <cstdlib>
#include <unistd.h>

#include "app/program.h"

int main(int argc, char** argv) {
  std::atexit([] { _exit(3); });  // the fault `exit`; runs before objects that are still in use are destroyed
  const int status = plexaura::run_program("mlp", argc, argv);
  _exit(status);
}

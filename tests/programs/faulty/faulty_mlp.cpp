// The program mlp, but that what PLEXAURA_FAULTS says goes wrong in its ranks: see faults.h.

#include <cstdlib>
#include <unistd.h>

#include "app/program.h"

int main(int argc, char** argv) {
  std::atexit([] { _exit(3); });  // of a fault: before anything that still works is destroyed
  const int status = plexaura::run_program("mlp", argc, argv);
  _exit(status);
}

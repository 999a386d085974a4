// The program mlp with a handler that calls exit(3) on SIGUSR1, in the middle of its work.

#include <csignal>
#include <cstdlib>
#include <thread>
#include <unistd.h>

#include "app/program.h"

int main(int argc, char** argv) {
  std::atexit([] { _exit(3); });  // runs before objects that are still in use are destroyed
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  std::thread([wanted] {
    int received = 0;
    sigwait(&wanted, &received);
    std::exit(3);
  }).detach();
  const int status = plexaura::run_program("mlp", argc, argv);
  _exit(status);
}

#include "tests/programs/faulty/faults.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

#include "distributed/wire/launcher.h"
#include "tests/programs/faulty/flipped_bit.h"

namespace plexaura::faulty {
namespace {

void happen(const std::string& fault) {
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "stop") std::raise(SIGSTOP);
  if (fault == "terminate") std::raise(SIGTERM);
  if (fault == "exit") std::exit(3);
  if (fault == "late") std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (fault.starts_with("flip ")) flip_bit(fault.substr(5));
  if (fault == "hang")
    while (true) pause();
}

}  // namespace

Faults& Faults::of_this_process() {
  static Faults faults;
  return faults;
}

Faults::Faults() : rank_(launched_rank().value_or(LaunchedRank{}).rank) {
  const char* const variable = std::getenv("PLEXAURA_FAULTS");
  std::istringstream text(variable == nullptr ? "" : variable);
  for (std::string entry; std::getline(text, entry, ';');) read(entry);
}

void Faults::read(const std::string& entry) {
  std::istringstream text(entry);
  int rank = 0;
  char colon = ':';
  Fault fault{};
  text >> rank >> colon >> fault.times >> colon >> fault.more >> colon;
  std::getline(text, fault.what, ':');
  std::getline(text, fault.point);
  if (rank == rank_) faults_.push_back(fault);
}

bool Faults::is_due(Fault& fault, std::string_view point) {
  if (fault.times == 0) return --fault.more == 0;
  if (point == fault.point) --fault.times;
  return fault.times == 0 && fault.more == 0;
}

void Faults::note(const std::string& point) const {
  if (const char* const file = std::getenv("PLEXAURA_FAULTS_HAPPENED"))
    std::ofstream(file, std::ios::app) << fmt::format("{}:{}\n", rank_, point) << std::flush;
}

void Faults::pass(std::string_view point) {
  std::string due;
  {
    const std::lock_guard lock(mutex_);
    for (Fault& fault : faults_)
      if (is_due(fault, point)) {
        due = fault.what;
        note(fault.point);
      }
  }
  happen(due);
}

}  // namespace plexaura::faulty

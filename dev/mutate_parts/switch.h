#pragma once

// Included above every source with faults, in the copy that dev/mutate makes. Chooses the fault of this
// process, and records which faults it reaches.

#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>

struct MutantSwitch {
  MutantSwitch() {
    if (const char* text = std::getenv("PLEXAURA_MUTANT")) number = std::atoi(text);
    const char* path = std::getenv("PLEXAURA_MUTANTS_REACHED");
    const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void* memory = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) reached = static_cast<unsigned char*>(memory);
  }

  int number = 0;                    // the fault that is switched on; 0 for none
  unsigned char* reached = nullptr;  // a byte for each fault, in a file that outlives the process
};

inline const MutantSwitch mutant_switch;

inline bool mutant(int number) {
  if (mutant_switch.reached != nullptr) mutant_switch.reached[number] = 1;
  return mutant_switch.number == number;
}

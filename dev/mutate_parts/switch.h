#pragma once

// Chooses the fault of this process, and records which faults the process reaches. In the copy of the sources
// that dev/mutate makes, each source with faults includes this file first.

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

  int number = 0;                    // number of the fault that is switched on; 0 for none
  unsigned char* reached = nullptr;  // a byte for each fault, in a mapped file that outlives the process
};

inline const MutantSwitch mutant_switch;

inline bool mutant(int number) {
  if (mutant_switch.reached != nullptr) mutant_switch.reached[number] = 1;
  return mutant_switch.number == number;
}

#pragma once

// Stands in the copy of the sources that dev/mutate makes, above every source with faults in it. Chooses which fault
// this process has, and notes which ones it comes by.

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

  int number = 0;                    // of the fault that this process has; 0 for none
  unsigned char* reached = nullptr;  // a byte for each fault, in a file that lives longer than the process
};

inline const MutantSwitch mutant_switch;

inline bool mutant(int number) {
  if (mutant_switch.reached != nullptr) mutant_switch.reached[number] = 1;
  return mutant_switch.number == number;
}

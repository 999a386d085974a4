// Replaces MPI_Isend in the program mlp, and writes from where it is called: one line for each way that leads
// to it, into the file that PLEXAURA_CALLS names, followed by the rank. A line consists of "MODULE+OFFSET" for
// each function, separated by tabs, from MPI_Isend outwards. These are addresses to which a function returns.

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fstream>
#include <link.h>
#include <mpi.h>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "distributed/wire/launcher.h"
#include "tests/support/frames.h"

namespace {

std::string place_of(void* address) {
  Dl_info info{};
  void* map = nullptr;
  if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0) return "?+0";
  return fmt::format("{}+{:#x}", info.dli_fname,
                     reinterpret_cast<std::uintptr_t>(address) - static_cast<link_map*>(map)->l_addr);
}

void note_call(const std::vector<void*>& frames) {
  static std::mutex mutex;
  static std::set<std::vector<void*>> known;
  const std::lock_guard lock(mutex);
  if (!known.insert(frames).second) return;
  const char* const name = std::getenv("PLEXAURA_CALLS");
  if (name == nullptr) return;
  static std::ofstream file(
      fmt::format("{}.{}", name, plexaura::launched_rank().value_or(plexaura::LaunchedRank{}).rank));
  for (void* const frame : frames) file << place_of(frame) << '\t';
  file << std::endl;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name is that of MPI
extern "C" __attribute__((visibility("default"))) int MPI_Isend(const void* data, int count,
                                                                MPI_Datatype type, int to, int tag,
                                                                MPI_Comm comm, MPI_Request* request) {
  note_call(plexaura::testing::frames_around());
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

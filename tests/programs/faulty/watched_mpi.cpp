// Replaces calls of MPI, with points for faults before and after them.

#include <dlfcn.h>
#include <mpi.h>
#include <string>

#include "tests/programs/faulty/faults.h"

namespace {

template <class F>
int watched(const char* name, F&& call) {
  plexaura::faulty::Faults& faults = plexaura::faulty::Faults::of_this_process();
  faults.pass(name);
  const int code = call();
  faults.pass(std::string("after ") + name);
  return code;
}

// Open MPI 4 does not have these functions.
template <class... T>
int of_open_mpi_5(const char* name, T... arguments) {
  const auto real = reinterpret_cast<int (*)(T...)>(dlsym(RTLD_NEXT, name));
  return watched(name, [&] { return real(arguments...); });
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the names are those of MPI
#pragma GCC visibility push(default)

int MPIX_Comm_revoke(MPI_Comm comm) { return of_open_mpi_5("MPIX_Comm_revoke", comm); }

int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* made) { return of_open_mpi_5("MPIX_Comm_shrink", comm, made); }

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return watched("MPI_Comm_dup", [&] { return PMPI_Comm_dup(comm, made); });
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return watched("MPI_Isend", [&] { return PMPI_Isend(data, count, type, to, tag, comm, request); });
}

#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

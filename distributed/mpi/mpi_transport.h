#pragma once

#include <memory>
#include <string>

#include "distributed/wire/transport.h"

namespace plexaura {

// Returns a transport of all ranks of MPI_COMM_WORLD. Starts MPI, which is possible only once in a process;
// the last transport made of this one closes it. Throws DeviceError if MPI cannot be started or does not
// allow calls from several threads.
std::unique_ptr<Transport> make_mpi_transport(double deadline_seconds);

// Returns the library's name and version in one line. May be called before MPI is started.
std::string mpi_library();

}  // namespace plexaura

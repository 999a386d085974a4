#pragma once

#include <memory>
#include <string>

#include "distributed/wire/transport.h"

namespace plexaura {

// All ranks of MPI_COMM_WORLD. Starts MPI, which the last transport of the family closes again; only once in
// a process. Throws DeviceError when MPI cannot be started or does not allow calls from several threads.
std::unique_ptr<Transport> make_mpi_transport(double deadline_seconds);

// The library's name and version, in one line; may be asked before MPI is started.
std::string mpi_library();

}  // namespace plexaura

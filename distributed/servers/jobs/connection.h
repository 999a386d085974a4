#pragma once

#include <string>

#include "core/base/file_descriptor.h"
#include "distributed/servers/jobs/server_file.h"

namespace plexaura {

// Where a server is to listen: an address or the name of a host, and a port, 0 for one of the system's choice.
struct ListenAt {
  std::string address = "127.0.0.1";
  int port = 0;
};

// A socket that listens there. Host and port by which clients reach it come into `place`; the host is the name of this one where
// the address stands for all addresses. UserError where that address and port cannot be had.
FileDescriptor listen_at(const ListenAt& at, ServerPlace& place);

// A connection to the first of the host's addresses at which somebody listens; none where that is not so within so many seconds.
FileDescriptor connect_to(const ServerPlace& place, double seconds);

}  // namespace plexaura

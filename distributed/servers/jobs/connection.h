#pragma once

#include <string>
#include <vector>

#include "core/base/file_descriptor.h"
#include "distributed/servers/jobs/server_file.h"

namespace plexaura {

// The place where a server listens: an address or the name of a host, and a port. Port 0 lets the system
// choose.
struct ListenAt {
  std::string address = "127.0.0.1";
  int port = 0;
};

// Returns a socket that listens at an address. Sets host and port of `place`, by which clients reach the
// socket. If the address stands for all addresses, the host is the name of this host. Throws UserError if the
// address and the port cannot be used.
FileDescriptor listen_at(const ListenAt& at, ServerPlace& place);

// Returns a connection to the first of the host's addresses at which a server listens. Returns no connection
// if there is no such server within `seconds`.
FileDescriptor connect_to(const ServerPlace& place, double seconds);

// Returns a connection to the first of the hosts that has a server at this port, or no connection. Divides the remaining
// time among the remaining hosts, so that a host that never answers does not use up all of it.
FileDescriptor connect_to_any(const std::vector<std::string>& hosts, int port, double seconds);

}  // namespace plexaura

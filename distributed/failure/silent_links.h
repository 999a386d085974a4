#pragma once

namespace plexaura {

// Closes those TCP connections of this process on which data was sent several times within a second or two
// without any answer of the other machine. The users of a closed connection get an error; TCP itself would
// keep trying for a quarter of an hour. A machine answers even if the process there is stopped or does not
// read. Returns true if a connection was closed.
bool close_silent_links();

}  // namespace plexaura

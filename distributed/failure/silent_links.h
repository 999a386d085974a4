#pragma once

namespace plexaura {

// Closes those TCP connections of this process whose other machine has not answered for a second or two, although
// something was sent there again and again. Who uses them hears of it then; TCP itself would go on for a quarter of an
// hour. A machine answers also where the process there is stopped or does not read. Whether there were any.
bool close_silent_links();

}  // namespace plexaura

#pragma once

namespace plexaura {

// Spares people a pause. When a rank returns a status other than 0, Open MPI's mpirun sleeps twice for
// odls_base_sigkill_timeout seconds and kills what is left of the job, even where nothing is left. A SIGCHLD
// ends such a sleep. To be called when all ranks have done their work and this process is about to end with
// such a status. Does nothing under other launchers.
void hurry_launcher();

}  // namespace plexaura

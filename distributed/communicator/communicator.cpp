#include "distributed/communicator/communicator.h"

#include <fmt/format.h>
#include <optional>

#include "distributed/communicator/group_communicator.h"
#include "distributed/wire/launcher.h"
#include "distributed/wire/transport.h"
#ifdef PLEXAURA_HAS_MPI
#include "distributed/mpi/mpi_transport.h"
#endif

namespace plexaura {
namespace {

#ifdef PLEXAURA_HAS_MPI
// Throws if MPI connects fewer ranks than were started. Otherwise each would train alone on all data, and
// overwrite the files of the others.
void check_all_connected(const LaunchedRank& launched, int connected) {
  if (launched.ranks <= connected) return;
  throw UserError(fmt::format(
      "{} says that {} ranks were started, but MPI connects {} of them ({}): start them with the mpirun of "
      "this MPI, or with srun --mpi=pmix if it knows PMIx; for a separate run unset {}",
      launched.source, launched.ranks, connected, message_passing_library(), launched.source));
}
#endif

std::unique_ptr<Transport> make_transport([[maybe_unused]] double deadline_seconds) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (!launched) return make_lone_transport();
#ifdef PLEXAURA_HAS_MPI
  if (!launched->is_connected) check_all_connected(*launched, 1);
  std::unique_ptr<Transport> transport = make_mpi_transport(deadline_seconds);
  check_all_connected(*launched, transport->size());
  return transport;
#else
  if (launched->ranks == 1) return make_lone_transport();
  throw UserError(
      "mpirun or srun started this program, but it was built without MPI: build with -DPLEXAURA_MPI=ON, or "
      "start it alone");
#endif
}

}  // namespace

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> make_communicator(const CommunicatorOptions& options) {
  if (!(options.deadline_seconds > 0)) {
    throw UserError(
        fmt::format("the deadline between ranks is {} s: it must be above 0", options.deadline_seconds));
  }
  return std::make_unique<GroupCommunicator>(make_transport(options.deadline_seconds), options);
}

std::string message_passing_library() {
#ifdef PLEXAURA_HAS_MPI
  return mpi_library();
#else
  return "no MPI: one rank only";
#endif
}

}  // namespace plexaura

#pragma once

#include <mpi.h>
#include <optional>
#include <vector>

namespace plexaura {

// What an MPI offers that outlives the death of ranks: "user-level failure mitigation", as in Open MPI 5 under
// `mpirun --with-ft ulfm`. Its functions are looked up in the library that runs, so that one program works with and
// without them.
class Ulfm {
 public:
  // MPI must have been started. Empty where the library has none of it, or the launcher has not switched it on.
  static std::optional<Ulfm> find();

  // To be called before MPI is started: with a rank lost, MPI_Finalize of the others may wait for it otherwise.
  static void prepare();

  // Whether a call has failed because a rank has died, or because another rank has revoked the communicator.
  static bool is_loss(int code);

  // The ranks of the communicator that this process knows to be dead, ascending.
  std::vector<int> dead(MPI_Comm comm) const;
  // From now on messages from any rank are received although some have died.
  void acknowledge(MPI_Comm comm) const { acknowledge_(comm); }
  // Calls of other ranks on this communicator fail from now on.
  void revoke(MPI_Comm comm) const { revoke_(comm); }
  // All ranks that live call it together: a communicator of them, in the order of ranks.
  int shrink(MPI_Comm comm, MPI_Comm* made) const { return shrink_(comm, made); }
  // All ranks that live call it together, and get the same: the bits that all of them have brought.
  int agree(MPI_Comm comm, int* bits) const { return agree_(comm, bits); }

 private:
  Ulfm() = default;

  int (*get_failed_)(MPI_Comm, MPI_Group*) = nullptr;
  int (*acknowledge_)(MPI_Comm) = nullptr;
  int (*revoke_)(MPI_Comm) = nullptr;
  int (*shrink_)(MPI_Comm, MPI_Comm*) = nullptr;
  int (*agree_)(MPI_Comm, int*) = nullptr;
};

}  // namespace plexaura

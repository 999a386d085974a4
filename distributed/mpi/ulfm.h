#pragma once

#include <mpi.h>
#include <optional>
#include <vector>

namespace plexaura {

// The functions of an MPI library that survives the death of ranks: "user-level failure mitigation", as in
// Open MPI 5 under `mpirun --with-ft ulfm`. They are looked up in the library at run time, so that one
// program works with and without them.
class Ulfm {
 public:
  // MPI must have been started. Returns nothing if the library does not have these functions, or if the
  // launcher has not switched them on.
  static std::optional<Ulfm> find();

  // Must be called before MPI is started. Without it, MPI_Finalize of the remaining ranks may wait for a rank
  // that was lost.
  static void prepare();

  // True if a call failed because a rank has died, or because another rank has revoked the communicator.
  static bool is_loss(int code);

  // Returns the ranks of the communicator that this process knows to be dead, in ascending order.
  std::vector<int> dead(MPI_Comm comm) const;
  // Acknowledges that ranks have died. Afterwards, messages can again be received from any rank.
  void acknowledge(MPI_Comm comm) const { acknowledge_(comm); }
  // Makes calls of all ranks on this communicator fail from now on, except shrink() and agree().
  void revoke(MPI_Comm comm) const { revoke_(comm); }
  // Makes a communicator of the living ranks, in the order of ranks, and stores it in `made`. All living
  // ranks call it together. Returns an error code of MPI.
  int shrink(MPI_Comm comm, MPI_Comm* made) const { return shrink_(comm, made); }
  // Replaces `bits` by the bitwise and of the bits of all living ranks, which call it together. Returns an
  // error code of MPI.
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

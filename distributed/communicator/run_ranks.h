#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// The communicator of a program, from the start of its work to the end. If several ranks end with the same
// error, one of them prints it (see speaks()). If several ranks throw errors of their own, each prints its
// own; let them agree on one by together(). A rank prints before the ranks leave, because mpirun ends the job
// with the first process that returns a status other than 0. Use:
//
//   RankSession session;
//   try {
//     return session.end(work(session.open(options)));
//   } catch (const std::exception& error) {
//     return session.fail(error);
//   }
class RankSession {
 public:
  // Makes the communicator of all ranks. It lives until end() or fail(). Called once; throws what
  // make_communicator() throws.
  Communicator& open(const CommunicatorOptions& options);
  // Called after the work: waits for the other ranks, and closes the communicator. Returns `status`, the exit
  // status of this rank. Throws DeviceError if the other ranks do not come; fail() follows.
  int end(int status);
  // Called if open(), the work or end() has thrown. Reports the error, and closes the communicator. Returns
  // the exit status: 2 for a UserError, 1 for any other exception. Ends the process by SIGKILL for a CutOff.
  int fail(const std::exception& error);

 private:
  int close(int status, bool together);

  std::unique_ptr<Communicator> ranks_;
};

// Runs the main function of a program that may have several ranks: a RankSession whose work is `body`, which
// returns the exit status.
int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body);

}  // namespace plexaura

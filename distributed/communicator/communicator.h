#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"
#include "distributed/communicator/mailbox.h"
#include "distributed/node/reduce.h"
#include "distributed/node/shared_window.h"

namespace plexaura {

struct CommunicatorOptions {
  // How long a rank waits for another before it gives up with a sentence.
  double deadline_seconds = 60;
  // Let the ranks of a node share memory where they can. Private where any rank wants it so.
  bool shared_memory = true;
  // Where the library outlives ranks that die: have every rank that waits throw a RankLost then, with which the others
  // can go on (RankLost::is_outlived()). Otherwise the ranks agree on one sentence, and end.
  bool outlive_ranks = false;
  // How sums are made, see choose_algorithm().
  std::string algorithm = "auto";
};

// The other end of a message. Messages of one sender and tag arrive in order.
struct Peer {
  int rank = 0;
  int tag = 0;                  // 0 or more
  double deadline_seconds = 0;  // 0: that of the communicator
};

// Where a rank runs. A node is a machine: its ranks report the same host name, and the same start of the
// system, for two machines may bear one name.
struct NodePlace {
  std::string host;
  int rank = 0;   // among the ranks of the node
  int size = 1;   // ranks of the node
  int index = 0;  // of the node, counted by lowest rank
  int count = 1;  // nodes
};

// A group of ranks that work together: what `Collective` promises, plus messages, nodes and shared memory.
//
// One thread at a time may use a communicator, and all its ranks make the same collective calls in the same
// order; a second thread takes a duplicate(), whose calls are independent. Every collective call begins with
// a call check (about a microsecond within a node), in which missing ranks and calls that do not match are
// found before any data moves. After a DeviceError the ranks may be anywhere in their work: the communicator
// refuses further calls, and closing it waits for nobody. UserError for arguments that can never work leaves
// it usable.
class Communicator : public Collective {
 public:
  ~Communicator() override;

  virtual void barrier(std::string_view what) = 0;

  // One message. send() may return before the other end has received. receive() waits for exactly data.size()
  // bytes; a message of another size is a DeviceError that names both.
  virtual void send(const Peer& to, std::span<const std::byte> data, std::string_view what) = 0;
  virtual void receive(const Peer& from, std::span<std::byte> data, std::string_view what) = 0;

  virtual const NodePlace& place() const = 0;

  // Collective. A communicator of the same ranks, or of those with the same colour (in the order of ranks).
  // It may outlive its parent.
  virtual std::unique_ptr<Communicator> duplicate(std::string_view what) = 0;
  virtual std::unique_ptr<Communicator> split(int colour, std::string_view what) = 0;

  // Collective. Letters between the same ranks; the mailbox may outlive this.
  virtual std::unique_ptr<Mailbox> mailbox(std::string_view what) = 0;

  // Whether the library outlives ranks that die ...
  virtual bool could_outlive_ranks() const = 0;
  // ... and outlive_ranks was asked for.
  virtual bool outlives_ranks() const = 0;
  // After a RankLost, on all ranks that are left: a communicator of these, in the order of ranks, which counts
  // them anew. `lost` is what the error said, in the numbers at the start. Of the communicator of all ranks only. Where
  // ranks are outlived, `lost` does not matter, and all that live call it again, on the same communicator, when more
  // have died. `deadline_seconds`: how long the others may need to come; 0: that of the communicator.
  virtual std::unique_ptr<Communicator> without(std::span<const int> lost, double deadline_seconds = 0) = 0;

  // Where ranks are outlived, on the communicator of all ranks: whether all that live bring `yes`. All of them call it
  // together, also after deaths, before without(), and get the same answer whoever dies meanwhile.
  virtual bool agree(bool yes, double deadline_seconds = 0) = 0;

  // Collective: sum() in two halves. Rank r takes the part of the array that part_of(count, dtype, r, size()) names.
  // reduce_scatter() leaves the sums in this rank's part, and anything in the others; all_gather() copies each
  // rank's part to all. One after the other they give the bits of sum(). all_gather() takes any type.
  virtual void reduce_scatter(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;
  virtual void all_gather(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;

  // Collective: `blocks` holds one block of bytes for each rank, in the order of ranks, all of the same length; `received`
  // gets the block that each rank has for this one, in the same order. UserError where the two differ in length, or are not
  // a block for each rank.
  virtual void all_to_all(std::span<const std::byte> blocks, std::span<std::byte> received,
                          std::string_view what) = 0;

  // Collective: from now on sums are made by this algorithm, in this communicator and in duplicates and parts made of it.
  //   auto          window where all ranks share memory, otherwise hierarchical
  //   window        on one host: each rank adds its part, in the memory of all
  //   hierarchical  hosts exchange parts of what the ranks of each have added
  //   ring          each rank sends to the next one alone
  //   tree          up to rank 0 and down again, for many ranks and few elements
  //   mpi           MPI_Allreduce
  // Throws UserError on all ranks for other names, and where the ranks cannot work so; then it is as before.
  virtual void choose_algorithm(std::string_view name) = 0;
  // Collective: from now on sums are those of so many shards, at least one for each rank. Rank r brings the sum of the
  // block divide_shards(shards, size())[r] of them. UserError for an algorithm that adds in another order or in a tree of
  // ranks.
  virtual void bring_shards(int shards) = 0;
  // Whether sums have the bits that all algorithms but `ring` and `mpi` give, however data is cut into calls and
  // wherever the ranks run.
  virtual bool keeps_order() const = 0;

  // Collective, the same number of bytes everywhere. Where sharing is off or not possible, all ranks
  // take private memory, and one of them says why, once. The window may be used with duplicates, too.
  // DeviceError on all ranks where those of a node do not have so much together; the communicator goes on.
  virtual SharedWindow allocate_shared(std::size_t bytes, std::string_view what) = 0;

  // Collective: sum() over `count` elements that lie `offset` bytes into the windows of all ranks, in place.
  // With `window` and `hierarchical` every rank sums its part right in the windows of its node. Where keeps_order(), the
  // same bits as sum(), however a window is cut into calls.
  virtual void sum_window(SharedWindow& window, std::size_t offset, DType dtype, std::int64_t count,
                          std::string_view what) = 0;

  // Collective: the end of this rank's work; waits for all others to come here, so that the library can be
  // closed without waiting. The destructor does it where this was not called, and then prints what goes
  // wrong. `error_status`: 0, or the exit status of an error that this rank reports itself. It waits a second at
  // most then: the others may have failed with it. Ranks that have not come by then end without a word, wherever
  // they wait, and with the same status; and no rank closes the library then. Returns whether all ranks have come; DeviceError where they have not,
  // unless this rank has failed. A duplicate or split waits for nobody and tells nobody: ranks that wait in it hear
  // of an error from the communicator of all ranks.
  virtual bool leave(int error_status) = 0;
};

// The communicator of all ranks that mpirun or srun has started; of one rank where the program runs by
// itself. Throws UserError when started by mpirun while built without MPI, DeviceError when MPI does not
// work. MPI cannot be started twice in a process: make one, keep it, and let it go last.
std::unique_ptr<Communicator> make_communicator(const CommunicatorOptions& options = {});

// What carries messages in this build, for --version: "Open MPI v4.1.4", or "no MPI: one rank only".
std::string message_passing_library();

}  // namespace plexaura

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
  // The time that a rank waits for another one before it throws a DeviceError.
  double deadline_seconds = 60;
  // True: the ranks of a node share memory if they can. If one rank sets false, all ranks use private memory.
  bool shared_memory = true;
  // True: if the library survives the death of ranks, every rank that waits then throws a RankLost after
  // which the other ranks can continue (RankLost::is_outlived()). False: the ranks agree on one error, and
  // end.
  bool outlive_ranks = false;
  // The algorithm of sums; see choose_algorithm().
  std::string algorithm = "auto";
};

// The other rank of a message, and the message's tag. Messages with one sender and one tag arrive in order.
struct Peer {
  int rank = 0;
  int tag = 0;                  // number that separates messages, 0 or more
  double deadline_seconds = 0;  // seconds to wait; 0: the deadline of the communicator
};

// The place of a rank. Ranks are on one node (machine) if they report the same host name and the same boot id
// of the kernel, because two machines may have one name.
struct NodePlace {
  std::string host;
  int rank = 0;   // number of this rank among the ranks of the node
  int size = 1;   // number of ranks on the node
  int index = 0;  // index of the node; nodes are ordered by their lowest rank
  int count = 1;  // number of nodes
};

// A group of ranks that work together: the calls of `Collective`, messages, nodes and shared memory.
//
// Only one thread at a time may use a communicator, and all ranks make the same collective calls in the same
// order. A second thread takes a duplicate(), whose calls are independent. Every collective call begins with
// a call check (about a microsecond within a node), which finds missing ranks and calls that do not match
// before any data moves. After a DeviceError the ranks may be at different points of their work: the
// communicator refuses further calls, and closing it waits for no rank. A UserError for invalid arguments
// leaves it usable.
class Communicator : public Collective {
 public:
  ~Communicator() override;

  virtual void barrier(std::string_view what) = 0;

  // Send and receive one message. send() may return before the other rank has received it. receive() waits
  // for exactly data.size() bytes, and throws a DeviceError that names both sizes if the message has another
  // one.
  virtual void send(const Peer& to, std::span<const std::byte> data, std::string_view what) = 0;
  virtual void receive(const Peer& from, std::span<std::byte> data, std::string_view what) = 0;

  virtual const NodePlace& place() const = 0;

  // Collective. duplicate() returns a communicator of the same ranks. split() returns a communicator of the
  // ranks that pass the same colour, in the order of ranks. Both may outlive this communicator.
  virtual std::unique_ptr<Communicator> duplicate(std::string_view what) = 0;
  virtual std::unique_ptr<Communicator> split(int colour, std::string_view what) = 0;

  // Collective. Returns a mailbox for letters between the same ranks. It may outlive this communicator.
  virtual std::unique_ptr<Mailbox> mailbox(std::string_view what) = 0;

  // True if the library survives the death of ranks.
  virtual bool could_outlive_ranks() const = 0;
  // True if the library survives the death of ranks, and CommunicatorOptions::outlive_ranks was set.
  virtual bool outlives_ranks() const = 0;
  // Called after a RankLost, on all ranks that are left, and only on the communicator of all ranks. Returns a
  // communicator of the ranks that are left, in the order of ranks, with new numbers. `lost` has the ranks
  // that the error named, as they were numbered at the start. If could_outlive_ranks(), `lost` is ignored,
  // and if more ranks die, all living ranks call it again on the same communicator. `deadline_seconds` is the
  // time to wait for the calls of the other ranks; 0: the deadline of the communicator.
  virtual std::unique_ptr<Communicator> without(std::span<const int> lost, double deadline_seconds = 0) = 0;

  // Returns true if all living ranks pass `yes`. Called only if outlives_ranks(), on the communicator of all
  // ranks. All living ranks call it together, also after deaths and before without(), and get the same answer
  // whichever ranks die meanwhile.
  virtual bool agree(bool yes, double deadline_seconds = 0) = 0;

  // Collective. The two halves of sum(). Rank r owns the part of the array that part_of(count, dtype, r,
  // size()) names. reduce_scatter() leaves the sums in this rank's part, and unspecified values elsewhere.
  // all_gather() copies each rank's part to all ranks, and accepts any type. Both calls in sequence give the
  // same bits as sum().
  virtual void reduce_scatter(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;
  virtual void all_gather(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;

  // Collective. `blocks` contains one block of bytes for each rank, in the order of ranks, all of the same
  // length. `received` gets the blocks that the ranks have sent to this one, in the same order. Throws
  // UserError if the two spans differ in length, or if the length is no multiple of the number of ranks.
  virtual void all_to_all(std::span<const std::byte> blocks, std::span<std::byte> received,
                          std::string_view what) = 0;

  // Collective. From now on this communicator, and duplicates and splits made of it afterwards, sum by this algorithm.
  //   auto          window if all ranks share memory, otherwise hierarchical
  //   window        on one host: each rank adds its part, in memory that all share
  //   hierarchical  the ranks of each host add up, then hosts exchange parts of these sums
  //   ring          each rank sends only to the next one
  //   tree          up to rank 0 and down again, for many ranks and few elements
  //   mpi           MPI_Allreduce
  // Throws UserError on all ranks for other names, and if the ranks cannot use the algorithm. Then the former
  // algorithm stays.
  virtual void choose_algorithm(std::string_view name) = 0;
  // Collective. From now on sums are sums of `shards` shards, at least one for each rank. Rank r passes to a
  // call the sum of the shards in block divide_shards(shards, size())[r]. Throws UserError if the algorithm
  // cannot add shards (sum_algorithms_of_shards()).
  virtual void bring_shards(int shards) = 0;
  // True if there is one rank, or if the present algorithm is neither `ring` nor `mpi`. The bits of sums then depend
  // neither on the algorithm, nor on how data is cut into calls, nor on the hosts on which the ranks run.
  virtual bool keeps_order() const = 0;

  // Collective. Allocates memory that the ranks of a node share. All ranks pass the same number of bytes. If sharing is
  // switched off or fails, or if each rank is alone on its node, all ranks allocate private memory; if sharing fails,
  // rank 0 prints the reason once. Duplicates may use the window too. Throws DeviceError on all ranks if those of a
  // node do not have enough memory together; the communicator stays usable.
  virtual SharedWindow allocate_shared(std::size_t bytes, std::string_view what) = 0;

  // Collective. Sums in place the `count` elements that begin at byte `offset` of each rank's window. With
  // `window` and `hierarchical`, ranks add directly in the windows of their node if these are shared. If
  // keeps_order(), the bits are those of sum(), however a window is cut into calls.
  virtual void sum_window(SharedWindow& window, std::size_t offset, DType dtype, std::int64_t count,
                          std::string_view what) = 0;

  // Collective. Ends this rank's work, and waits until all other ranks have called it, so that the library
  // can be closed without waiting. The destructor calls it if nobody did, and prints its errors.
  // `error_status` is 0, or the exit status of an error that this rank reports itself. With an error it waits
  // one second at most, because the other ranks may have failed too. Ranks that do not come in that second
  // end without a message and with the same status, wherever they wait, and no rank closes the library.
  // Returns true if all ranks have come. Throws DeviceError if they have not, unless this rank has an error,
  // the lost ranks are outlived, or an earlier call has failed.
  // Does nothing on a duplicate or a split: the communicator of all ranks reports errors to ranks that wait in these.
  virtual bool leave(int error_status) = 0;
};

// Returns the communicator of all ranks that mpirun or srun has started. If the program was started alone, it has one
// rank. Throws UserError for wrong options, if several ranks were started but the program was built without MPI, and if
// MPI connects fewer ranks than were started. Throws DeviceError if MPI does not work. MPI can be started only once
// in a process: make one communicator, keep it, and destroy it last.
std::unique_ptr<Communicator> make_communicator(const CommunicatorOptions& options = {});

// Returns the message library of this build, for --version: "Open MPI v4.1.4", or "no MPI: one rank only".
std::string message_passing_library();

}  // namespace plexaura

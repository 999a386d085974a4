// The parts of a GroupCommunicator that use memory shared by the ranks of a node.

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/base/machine_memory.h"
#include "core/base/print.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/node/reduce.h"

namespace plexaura {

SharedWindow GroupCommunicator::allocate_shared(std::size_t bytes, std::string_view what) {
  refuse_in_phase(what);
  const bool nobody_to_share_with = topology_.nodes() == size();
  if (size() == 1) return SharedWindow::make_private(bytes);
  const CallSignature call = announce(Call::allocate, what, DType::uint8, static_cast<std::int64_t>(bytes));
  attempt(what, [&] { meet(call); });
  check_room(bytes, what);
  return attempt(what, [&] {
    if (options_.shared_memory && !nobody_to_share_with) {
      if (std::optional<SharedWindow> window = try_to_share(bytes, call)) return std::move(*window);
    }
    return SharedWindow::make_private(bytes);
  });
}

// Throws on all ranks if one node has too little memory, shared or private, because the system would kill
// processes that use more.
void GroupCommunicator::check_room(std::size_t bytes, std::string_view what) {
  const auto is_beside = [&](int other) {
    return topology_.of(other).process_space == topology_.of(rank()).process_space;
  };
  const auto windows = static_cast<std::size_t>(std::ranges::count_if(topology_.own_node_ranks(), is_beside));
  const std::size_t memory = machine_memory();
  std::exception_ptr mine;
  if (bytes > memory / windows) {
    mine = std::make_exception_ptr(DeviceError(
        fmt::format("'{}' takes {:.1f} MB of each of {} ranks on {}, which may have {:.1f} MB together: "
                    "start fewer ranks on a machine, or make the model smaller",
                    what, static_cast<double>(bytes) / 1e6, windows, topology_.of(rank()).host,
                    static_cast<double>(memory) / 1e6)));
  }
  agree_on_error(*this, mine, what);
}

// Makes shared memory. Returns nothing, on all ranks, if one rank cannot share.
std::optional<SharedWindow> GroupCommunicator::try_to_share(std::size_t bytes, const CallSignature& at) {
  std::string problem;
  std::vector<SharedSegment> segments = open_segments(bytes, at, problem);
  for (const std::string& found : collect(problem, at)) {
    if (found.empty()) continue;
    options_.shared_memory = false;  // the reason is reported once, and sharing is not tried again
    if (rank() == 0) {
      print_error(found + ": all ranks take private memory, and sums are slower");
    }
    return std::nullopt;
  }
  segments[static_cast<std::size_t>(place_.rank)].close_to_others();
  return SharedWindow(std::move(segments), place_.rank, bytes);
}

// Returns one segment for each rank of the node. If that fails, returns no segment; the ranks that failed set
// `problem`.
std::vector<SharedSegment> GroupCommunicator::open_segments(std::size_t bytes, const CallSignature& at,
                                                            std::string& problem) {
  std::vector<SharedSegment> segments;
  std::optional<SharedSegment> own;
  try {
    own = SharedSegment::create(bytes);
  } catch (const DeviceError& error) {
    problem = fmt::format("{} cannot make memory that ranks share: {}", topology_.name(rank()), error.what());
  }
  const std::vector<std::string> addresses = collect(own ? own->address() : "", at);
  for (const int member : topology_.own_node_ranks()) {
    const std::string& address = addresses[static_cast<std::size_t>(member)];
    if (!own || address.empty()) return {};
    std::optional<SharedSegment> theirs;
    if (member != rank()) theirs = SharedSegment::attach(address, bytes);
    if (member != rank() && !theirs) {
      problem =
          fmt::format("{} cannot open the memory of {} through /proc, as if it ran in another container",
                      topology_.name(rank()), topology_.name(member));
      return {};
    }
    segments.push_back(member == rank() ? std::move(*own) : std::move(*theirs));
  }
  return segments;
}

// Returns the addresses at byte `offset` of the node's windows. The list is a member, so that a step
// allocates nothing.
std::span<std::byte*> GroupCommunicator::arrays_at(const SharedWindow& window, std::size_t offset) {
  arrays_.assign(window.bases().begin(), window.bases().end());
  for (std::byte*& base : arrays_) base += offset;
  return arrays_;
}

void GroupCommunicator::sum_window(SharedWindow& window, std::size_t offset, DType dtype, std::int64_t count,
                                   std::string_view what) {
  refuse_in_phase(what);
  check_summable(dtype);
  if (count < 0 || offset % size_of(dtype) != 0 || offset + bytes_of(dtype, count) > window.bytes()) {
    throw UserError(fmt::format(
        "'{}': {} {} at byte {} must be within the window of {} bytes, at a multiple of their size", what,
        count, name_of(dtype), offset, window.bytes()));
  }
  if (size() == 1) return;
  attempt(what, [&] {
    CallSignature call = announce(Call::sum_window, what, dtype, count, static_cast<std::int64_t>(offset));
    algorithm_->bring(call, window.data() + offset);
    meet_for_sum(call);
    const bool is_shared = window.shared() && rendezvous_;
    algorithm_->sum(call, window.data() + offset,
                    is_shared ? arrays_at(window, offset) : std::span<std::byte*>());
  });
}

}  // namespace plexaura

#include "distributed/group_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "distributed/failure.h"
#include "distributed/reduce.h"
#include "distributed/tags.h"
#include "distributed/texts.h"
#include "distributed/wait.h"

namespace plexaura {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{1} << 20;
constexpr std::size_t kBroadcastPiece = std::size_t{1} << 20;

std::size_t bytes_of(DType dtype, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

std::span<std::byte> as_bytes(std::string& text) { return std::as_writable_bytes(std::span(text)); }

Places unknown_places(const Transport& transport) {
  return {
      std::vector<ProcessPlace>(static_cast<std::size_t>(transport.size()), ProcessPlace{"", 0, "unknown"}),
      transport.rank()};
}

}  // namespace

GroupCommunicator::GroupCommunicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                                     bool is_part)
    : options_(options),
      transport_(std::move(transport)),
      messages_(transport_->duplicate()),
      is_part_(is_part),
      exceptions_at_start_(std::uncaught_exceptions()),
      places_(unknown_places(*transport_)),
      message_roll_call_(make_message_roll_call(*transport_, places_, options_.deadline_seconds)) {
  find_places();
  agree_to_share();
  rank_chain_.emplace(*transport_, Route::over_ranks(size()), options_.deadline_seconds);
  node_chain_.emplace(*transport_, Route::over_nodes(places_), options_.deadline_seconds);
  set_up_board();
}

GroupCommunicator::~GroupCommunicator() {
  try {
    leave(std::uncaught_exceptions() > exceptions_at_start_);
  } catch (const std::exception& error) {
    if (speaks(error)) fmt::print(stderr, "{}\n", error.what());
  }
}

void GroupCommunicator::find_places() {
  std::vector<ProcessPlace> places;
  for (const std::string& text : gather_all(encode(this_place()), "where the ranks are")) {
    places.push_back(decode_place(text));
  }
  places_ = Places(std::move(places), rank());
  place_ = {places_.of(rank()).host, places_.own_node_rank(),
            static_cast<int>(places_.own_node_ranks().size()), places_.own_node(), places_.nodes()};
}

// One rank that does not want to share is enough: all have to take part in making shared memory.
void GroupCommunicator::agree_to_share() {
  for (const std::string& wish :
       gather_all(options_.shared_memory ? "shared" : "private", "whether ranks share memory"))
    if (wish == "private") options_.shared_memory = false;
}

void GroupCommunicator::set_up_board() {
  SharedWindow control = allocate_shared(Board::bytes_per_rank() + kStagingBytes, "the board of the node");
  if (!control.shared()) return;
  control_.emplace(std::move(control));
  board_ = std::make_unique<Board>(*control_, places_, options_.deadline_seconds);
}

RollCall& GroupCommunicator::roll_call() {
  if (board_ && places_.nodes() == 1) return *board_;
  return *message_roll_call_;
}

// Runs a call, and remembers when it failed in a way that leaves the ranks at different places.
template <class F>
auto GroupCommunicator::attempt(F&& work) {
  if (broken_ || left_) throw InternalError("the communicator was used after an error or after leave()");
  try {
    return work();
  } catch (const std::exception&) {
    broken_ = true;
    transport_->abandon();
    messages_->abandon();
    throw;
  }
}

void GroupCommunicator::fail(const std::string& text) {
  if (!board_) throw_in_turn(rank(), text);
  wait_for_turn(places_.own_node());
  board_->fail(text);
}

template <class Ready>
void GroupCommunicator::wait_for(Ready&& ready, int peer, double deadline, const std::string& at) {
  constexpr unsigned kPausesBetweenLooks = 256;
  Wait wait(deadline);
  for (unsigned pauses = 1; !ready(); ++pauses) {
    if (pauses % kPausesBetweenLooks == 0) {
      if (board_) board_->check_trouble();
      if (places_.is_dead(peer))
        fail(fmt::format("{} has died; rank {} waits for it at {}", places_.name(peer), rank(), at));
    }
    if (wait.expired()) {
      fail(fmt::format("rank {} waited {:.3g} s for {} at {}: stopped, stuck, or at work elsewhere", rank(),
                       deadline, places_.name(peer), at));
    }
    wait.pause();
  }
}

void GroupCommunicator::finish(Request& request, int peer, double deadline, const std::string& at) {
  wait_for([&] { return transport_->done(request); }, peer, deadline, at);
}

void GroupCommunicator::barrier(std::string_view what) {
  if (size() == 1) return;
  attempt([&] { roll_call().meet(announce(Call::barrier, what)); });
}

void GroupCommunicator::sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) {
  check_summable(dtype);
  if (size() == 1) return;
  attempt([&] {
    const Announcement call = announce(Call::sum, what, dtype, count);
    roll_call().meet(call);
    if (board_ && places_.nodes() == 1) return sum_staged(call, data);
    sum_over_chain(*rank_chain_, call, std::span(&data, 1));
  });
}

// Piece by piece through the staging areas of the node's shared memory.
void GroupCommunicator::sum_staged(const Announcement& call, std::byte* data) {
  std::byte* const own = control_->data() + Board::bytes_per_rank();
  const auto piece = static_cast<std::int64_t>(kStagingBytes / size_of(call.dtype));
  for (std::int64_t first = 0; first < call.count; first += piece) {
    const std::int64_t count = std::min(piece, call.count - first);
    std::byte* const here = data + bytes_of(call.dtype, first);
    std::memcpy(own, here, bytes_of(call.dtype, count));
    board_->barrier(call);
    sum_own_part(call.dtype, *control_, Board::bytes_per_rank(), count);
    board_->barrier(call);
    std::memcpy(here, own, bytes_of(call.dtype, count));
  }
}

// The windows of the node from this byte on. The list is kept, so that a step allocates nothing.
std::span<std::byte*> GroupCommunicator::arrays_at(const SharedWindow& window, std::size_t offset) {
  arrays_.assign(window.bases().begin(), window.bases().end());
  for (std::byte*& base : arrays_) base += offset;
  return arrays_;
}

void GroupCommunicator::sum_own_part(DType dtype, const SharedWindow& window, std::size_t offset,
                                     std::int64_t count) {
  const Part part = part_of(count, dtype, place_.rank, place_.size);
  sum_in_place(dtype, arrays_at(window, offset + bytes_of(dtype, part.first)), part.count);
}

void GroupCommunicator::sum_window(SharedWindow& window, std::size_t offset, DType dtype, std::int64_t count,
                                   std::string_view what) {
  check_summable(dtype);
  if (count < 0 || offset % size_of(dtype) != 0 || offset + bytes_of(dtype, count) > window.bytes()) {
    throw UserError(
        fmt::format("'{}': {} {} at byte {} do not lie in a window of {} bytes, aligned to their size", what,
                    count, name_of(dtype), offset, window.bytes()));
  }
  if (size() == 1) return;
  attempt([&] {
    const Announcement call =
        announce(Call::sum_window, what, dtype, count, static_cast<std::int64_t>(offset));
    roll_call().meet(call);
    sum_in_windows(call, window);
  });
}

void GroupCommunicator::sum_in_windows(const Announcement& call, const SharedWindow& window) {
  const auto offset = static_cast<std::size_t>(call.place);
  if (!window.shared()) return sum_over_chain(*rank_chain_, call, arrays_at(window, offset));
  if (places_.nodes() == 1) {
    sum_own_part(call.dtype, window, offset, call.count);
  } else {
    sum_over_chain(*node_chain_, call, arrays_at(window, offset));
  }
  board_->barrier(call);
}

void GroupCommunicator::sum_over_chain(ChainSum& chain, const Announcement& call,
                                       std::span<std::byte* const> arrays) {
  const auto on_progress = [this] {
    if (board_) board_->beat();
  };
  const auto on_timeout = [&](int awaited) {
    fail(
        fmt::format("rank {} waited {:.3g} s for {} in the middle of {}: stopped, stuck, or its link is down",
                    rank(), options_.deadline_seconds, places_.name(awaited), describe(call)));
  };
  chain.run(call.dtype, arrays, call.count, on_progress, on_timeout);
}

void GroupCommunicator::broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) {
  check_peer({root});
  if (size() == 1) return;
  attempt([&] {
    const Announcement call =
        announce(Call::broadcast, what, DType::uint8, static_cast<std::int64_t>(bytes), root);
    roll_call().meet(call);
    spread(data, bytes, root, describe(call));
  });
}

// Down a binomial tree, in pieces, so that all levels work at the same time.
void GroupCommunicator::spread(std::byte* data, std::size_t bytes, int root, const std::string& at) {
  const int place = (rank() - root + size()) % size();  // in the tree; the root is 0
  const int reach = place == 0 ? size() : place & -place;
  const auto rank_at = [&](int tree_place) { return (tree_place + root) % size(); };
  std::vector<std::pair<Request, int>> sent;
  for (std::size_t begin = 0; begin < bytes; begin += kBroadcastPiece) {
    const std::span<std::byte> piece(data + begin, std::min(kBroadcastPiece, bytes - begin));
    if (place != 0) {
      const int parent = rank_at(place - reach);
      Request request = transport_->receive(piece, parent, tag::broadcast);
      finish(request, parent, options_.deadline_seconds, at);
    }
    for (int step = 1; step < reach && place + step < size(); step *= 2) {
      const int child = rank_at(place + step);
      sent.emplace_back(transport_->send(piece, child, tag::broadcast), child);
    }
  }
  for (auto& [request, child] : sent) finish(request, child, options_.deadline_seconds, at);
}

std::vector<std::string> GroupCommunicator::gather_all(const std::string& mine, std::string_view what) {
  if (size() == 1) return {mine};
  return attempt([&] {
    const Announcement call = announce(Call::gather, what);
    roll_call().meet(call);
    return collect(mine, describe(call));
  });
}

std::vector<std::string> GroupCommunicator::collect(const std::string& mine, const std::string& at) {
  std::string packed = gather_at_root(mine, at);
  std::uint64_t length = packed.size();
  spread(reinterpret_cast<std::byte*>(&length), sizeof length, 0, at);
  packed.resize(length);
  spread(as_bytes(packed).data(), length, 0, at);
  return unpack(packed);
}

// All texts on rank 0, "" elsewhere.
std::string GroupCommunicator::gather_at_root(const std::string& mine, const std::string& at) {
  if (rank() != 0) {
    Request request = transport_->send(std::as_bytes(std::span(mine)), 0, tag::gather);
    finish(request, 0, options_.deadline_seconds, at);
    return {};
  }
  std::vector<std::string> texts{mine};
  for (int from = 1; from < size(); ++from) {
    std::optional<std::size_t> length;
    wait_for([&] { return (length = transport_->waiting(from, tag::gather)).has_value(); }, from,
             options_.deadline_seconds, at);
    std::string text(*length, '\0');
    Request request = transport_->receive(as_bytes(text), from, tag::gather);
    finish(request, from, options_.deadline_seconds, at);
    texts.push_back(std::move(text));
  }
  return pack(texts);
}

void GroupCommunicator::check_peer(const Peer& peer) const {
  if (peer.rank < 0 || peer.rank >= size() || peer.tag < 0) {
    throw UserError(fmt::format("there is no rank {} with tag {}: ranks are 0 to {}, tags at least 0",
                                peer.rank, peer.tag, size() - 1));
  }
}

void GroupCommunicator::send(const Peer& to, std::span<const std::byte> data, std::string_view what) {
  check_peer(to);
  attempt([&] {
    Request request = messages_->send(data, to.rank, to.tag);
    const double deadline = to.deadline_seconds > 0 ? to.deadline_seconds : options_.deadline_seconds;
    wait_for([&] { return messages_->done(request); }, to.rank, deadline,
             fmt::format("'{}' (a message to it)", what));
  });
}

void GroupCommunicator::receive(const Peer& from, std::span<std::byte> data, std::string_view what) {
  check_peer(from);
  attempt([&] {
    const double deadline = from.deadline_seconds > 0 ? from.deadline_seconds : options_.deadline_seconds;
    const std::string at = fmt::format("'{}' (a message from it)", what);
    std::optional<std::size_t> length;
    wait_for([&] { return (length = messages_->waiting(from.rank, from.tag)).has_value(); }, from.rank,
             deadline, at);
    if (*length != data.size()) {
      fail(fmt::format("rank {} expects {} bytes for '{}', but {} sent {}", rank(), data.size(), what,
                       places_.name(from.rank), *length));
    }
    Request request = messages_->receive(data, from.rank, from.tag);
    wait_for([&] { return messages_->done(request); }, from.rank, deadline, at);
  });
}

std::unique_ptr<Communicator> GroupCommunicator::duplicate(std::string_view what) {
  return attempt([&]() -> std::unique_ptr<Communicator> {
    if (size() > 1) roll_call().meet(announce(Call::duplicate, what));
    return std::make_unique<GroupCommunicator>(transport_->duplicate(), options_, true);
  });
}

std::unique_ptr<Communicator> GroupCommunicator::split(int colour, std::string_view what) {
  return attempt([&]() -> std::unique_ptr<Communicator> {
    if (size() > 1) roll_call().meet(announce(Call::split, what));
    return std::make_unique<GroupCommunicator>(transport_->split(colour), options_, true);
  });
}

SharedWindow GroupCommunicator::allocate_shared(std::size_t bytes, std::string_view what) {
  const bool nobody_to_share_with = places_.nodes() == size();
  if (size() == 1) return SharedWindow::make_private(bytes);
  return attempt([&] {
    const Announcement call = announce(Call::allocate, what, DType::uint8, static_cast<std::int64_t>(bytes));
    roll_call().meet(call);
    if (options_.shared_memory && !nobody_to_share_with) {
      if (std::optional<SharedWindow> window = try_to_share(bytes, describe(call))) return std::move(*window);
    }
    return SharedWindow::make_private(bytes);
  });
}

// All ranks share, or none does.
std::optional<SharedWindow> GroupCommunicator::try_to_share(std::size_t bytes, const std::string& at) {
  std::optional<SharedSegment> own = SharedSegment::create(bytes);
  const std::vector<std::string> names = collect(own ? own->name() : "", at);
  std::vector<SharedSegment> segments;
  for (const int member : places_.own_node_ranks()) {
    const std::string& name = names[static_cast<std::size_t>(member)];
    std::optional<SharedSegment> segment =
        member == rank() ? std::exchange(own, std::nullopt) : SharedSegment::attach(name, bytes);
    if (!segment) break;
    segments.push_back(std::move(*segment));
  }
  const bool complete = segments.size() == places_.own_node_ranks().size();
  const std::vector<std::string> lacking = collect(complete ? "" : place_.host, at);
  const auto poor =
      std::find_if(lacking.begin(), lacking.end(), [](const std::string& host) { return !host.empty(); });
  if (poor == lacking.end()) {
    segments[static_cast<std::size_t>(place_.rank)].forget_name();
    return SharedWindow(std::move(segments), place_.rank, bytes);
  }
  options_.shared_memory = false;  // said once, and not tried again
  if (rank() == 0) {
    fmt::print(stderr,
               "/dev/shm on {} has no room for {:.1f} MB per rank: all ranks take private memory, and sums "
               "are slower\n",
               *poor, static_cast<double>(bytes) / 1e6);
  }
  return std::nullopt;
}

void GroupCommunicator::leave(bool in_error) {
  if (std::exchange(left_, true) || broken_ || transport_->abandoned() || size() == 1) return;
  const Announcement word = announce(in_error ? Call::leave_in_error : Call::leave, "");
  if (is_part_) {
    if (in_error) roll_call().leave_word(word);
    return;
  }
  try {
    roll_call().meet(word);
  } catch (const std::exception&) {
    transport_->abandon();
    throw;
  }
}

}  // namespace plexaura

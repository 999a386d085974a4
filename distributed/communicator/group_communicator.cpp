#include "distributed/communicator/group_communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/base/print.h"
#include "core/exchange/rank_lost.h"
#include "distributed/failure/rank_wait.h"
#include "distributed/failure/stopped_ranks.h"
#include "distributed/node/reduce.h"
#include "distributed/wire/tags.h"
#include "distributed/wire/texts.h"

namespace plexaura {
namespace {

// After each piece of a broadcast, a rank waits until at most this number of its messages has not left. A piece is one
// message to each child of the rank in the tree.
constexpr std::size_t messages_under_way = 8;

std::span<std::byte> as_bytes(std::string& text) { return std::as_writable_bytes(std::span(text)); }

// The longest time that a rank waits for the other ranks when it leaves with an error. Ranks that fail
// together with it arrive soon, and ranks that wait for it in other calls have to learn of the error soon.
constexpr double seconds_to_leave_in_error = 1.0;

// Returns places without hosts. A rank of a duplicate or a split does not yet know the numbers of the ranks
// in the whole run.
Topology unknown_topology(const Transport& transport, bool is_part) {
  std::vector<ProcessPlace> places;
  for (int rank = 0; rank < transport.size(); ++rank) {
    places.push_back({"", 0, "unknown", "", is_part ? -1 : rank});
  }
  return {std::move(places), transport.rank()};
}

}  // namespace

GroupCommunicator::GroupCommunicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                                     std::shared_ptr<Alarm> alarm, const ProcessPlace& place)
    : options_(options),
      transport_(std::move(transport)),
      messages_(transport_->duplicate()),
      outbox_(*transport_),
      users_outbox_(*messages_),
      is_part_(alarm != nullptr),
      alarm_(alarm ? std::move(alarm) : std::make_shared<Alarm>(transport_->duplicate(), outlives_ranks())),
      exceptions_at_start_(std::uncaught_exceptions()),
      topology_(unknown_topology(*transport_, is_part_)),
      message_call_check_(make_message_call_check(*transport_, topology_, *alarm_)),
      all_to_all_(*transport_, topology_, *alarm_) {
  find_topology(place);
  if (!is_part_) alarm_->set_topology(topology_);
  if (!is_part_ && outlives_ranks())
    transport_->when_stuck([topology = topology_] { kill_stopped(topology, stopped_ranks(topology)); });
  agree_to_share();
  share_control_memory();
  choose_algorithm(options_.algorithm);
}

GroupCommunicator::~GroupCommunicator() {
  try {
    leave(std::uncaught_exceptions() > exceptions_at_start_ ? 1 : 0);
  } catch (const std::exception& error) {
    if (speaks(error)) print_error(error.what());
  }
}

void GroupCommunicator::find_topology(ProcessPlace own) {
  std::vector<ProcessPlace> places;
  own.number = alarm_->rank();
  if (own.started_as < 0) own.started_as = own.number;
  for (const std::string& text : gather_all(encode(own), "where the ranks are")) {
    places.push_back(decode_place(text));
  }
  topology_ = Topology(std::move(places), rank());
  place_ = {topology_.of(rank()).host, topology_.own_node_rank(),
            static_cast<int>(topology_.own_node_ranks().size()), topology_.own_node(), topology_.nodes()};
}

// Switches sharing off on all ranks if one rank wants private memory, because all ranks have to take part in
// making shared memory.
void GroupCommunicator::agree_to_share() {
  for (const std::string& wish :
       gather_all(options_.shared_memory ? "shared" : "private", "whether ranks share memory"))
    if (wish == "private") options_.shared_memory = false;
}

CallCheck& GroupCommunicator::call_check() {
  if (rendezvous_ && topology_.nodes() == 1) return *rendezvous_;
  return *message_call_check_;
}

std::uint8_t GroupCommunicator::meet(const CallSignature& call) {
  return call_check().meet(call, options_.deadline_seconds);
}

template <class Ready>
void GroupCommunicator::wait_for(Ready&& ready, const CallSignature& at, double deadline) {
  RankWait wait(*alarm_, {at, deadline, topology_.numbers()});
  while (!ready()) wait.pause();
}

// Receives a message. It arrives in `arriving_`, and not in `data`, so that nothing writes to `data` after
// this function has thrown.
void GroupCommunicator::take(Transport& transport, std::span<std::byte> data, const Peer& from,
                             const CallSignature& at) {
  if (arriving_.size() < data.size()) arriving_.resize(data.size());
  Request request = transport.receive(std::span(arriving_).first(data.size()), from.rank, from.tag);
  try {
    wait_for([&] { return transport.done(request); }, at, deadline_of(from));
  } catch (...) {
    transport.keep(request, std::move(arriving_));
    throw;
  }
  std::copy_n(arriving_.begin(), data.size(), data.begin());
}

// Waits until at most `down_to` messages of the outbox have not left.
void GroupCommunicator::empty(Outbox& outbox, const CallSignature& at, double deadline, std::size_t down_to) {
  wait_for([&] { return outbox.under_way() <= down_to; }, at, deadline);
}

void GroupCommunicator::barrier(std::string_view what) {
  refuse_in_phase(what);
  if (size() == 1) return;
  attempt(what, [&] { meet(announce(Call::barrier, what)); });
}

void GroupCommunicator::broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) {
  refuse_in_phase(what);
  check_peer({root});
  if (size() == 1) return;
  attempt(what, [&] {
    const CallSignature call = announce(Call::broadcast, what, DType::uint8, static_cast<std::int64_t>(bytes),
                                        topology_.number(root));
    meet(call);
    spread(data, bytes, root, call);
  });
}

void GroupCommunicator::all_to_all(std::span<const std::byte> blocks, std::span<std::byte> received,
                                   std::string_view what) {
  refuse_in_phase(what);
  const auto ranks = static_cast<std::size_t>(size());
  if (blocks.size() != received.size() || blocks.size() % ranks != 0)
    throw UserError(
        fmt::format("'{}': {} bytes are sent and {} received, which is not one block for each of {} ranks",
                    what, blocks.size(), received.size(), ranks));
  if (size() == 1) {
    std::ranges::copy(blocks, received.begin());
    return;
  }
  attempt(what, [&] {
    const CallSignature call =
        announce(Call::all_to_all, what, DType::uint8, static_cast<std::int64_t>(blocks.size() / ranks));
    meet(call);
    all_to_all_.run(call, options_.deadline_seconds, blocks, received);
  });
}

// Sends the bytes of the root to all ranks along a binomial tree, in pieces, so that all levels of the tree
// work at the same time.
void GroupCommunicator::spread(std::byte* data, std::size_t bytes, int root, const CallSignature& at) {
  const int place = (rank() - root + size()) % size();  // number of this rank in the tree; the root has 0
  const int reach = place == 0 ? size() : place & -place;
  const auto rank_at = [&](int tree_place) { return (tree_place + root) % size(); };
  constexpr auto longest = static_cast<std::size_t>(message_bytes);
  for (std::size_t begin = 0; begin < bytes; begin += longest) {
    const std::span<std::byte> piece(data + begin, std::min(longest, bytes - begin));
    if (place != 0) {
      take(*transport_, piece, {rank_at(place - reach), tag::broadcast}, at);
    }
    for (int step = 1; step < reach && place + step < size(); step *= 2) {
      outbox_.send(piece, rank_at(place + step), tag::broadcast);
    }
    empty(outbox_, at, options_.deadline_seconds, messages_under_way);
  }
  empty(outbox_, at, options_.deadline_seconds);
}

std::vector<std::string> GroupCommunicator::gather_all(const std::string& mine, std::string_view what) {
  refuse_in_phase(what);
  if (size() == 1) return {mine};
  Transport::check_length(mine.size());
  return attempt(what, [&] {
    const CallSignature call = announce(Call::gather, what);
    meet(call);
    return collect(mine, call);
  });
}

std::vector<std::string> GroupCommunicator::collect(const std::string& mine, const CallSignature& at) {
  std::string packed = gather_at_root(mine, at);
  std::uint64_t length = packed.size();
  spread(reinterpret_cast<std::byte*>(&length), sizeof length, 0, at);
  packed.resize(length);
  spread(as_bytes(packed).data(), length, 0, at);
  return unpack(packed);
}

// Returns all texts, packed, on rank 0, and "" on other ranks.
std::string GroupCommunicator::gather_at_root(const std::string& mine, const CallSignature& at) {
  if (rank() != 0) {
    outbox_.send(std::as_bytes(std::span(mine)), 0, tag::gather);
    empty(outbox_, at, options_.deadline_seconds);
    return {};
  }
  std::vector<std::string> texts{mine};
  for (int from = 1; from < size(); ++from) {
    std::optional<Envelope> envelope;
    wait_for([&] { return (envelope = transport_->waiting(from, tag::gather)).has_value(); }, at,
             options_.deadline_seconds);
    std::string text(envelope->bytes, '\0');
    take(*transport_, as_bytes(text), {from, tag::gather}, at);
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

double GroupCommunicator::deadline_of(const Peer& peer) const {
  return peer.deadline_seconds > 0 ? peer.deadline_seconds : options_.deadline_seconds;
}

void GroupCommunicator::send(const Peer& to, std::span<const std::byte> data, std::string_view what) {
  check_peer(to);
  Transport::check_length(data.size());
  attempt(what, [&] {
    const CallSignature at = announce(Call::send, what, DType::uint8, static_cast<std::int64_t>(data.size()),
                                      topology_.number(to.rank));
    users_outbox_.send(data, to.rank, to.tag);
    empty(users_outbox_, at, deadline_of(to));
  });
}

void GroupCommunicator::receive(const Peer& from, std::span<std::byte> data, std::string_view what) {
  check_peer(from);
  attempt(what, [&] {
    const CallSignature at = announce(Call::receive, what, DType::uint8,
                                      static_cast<std::int64_t>(data.size()), topology_.number(from.rank));
    std::optional<Envelope> envelope;
    wait_for([&] { return (envelope = messages_->waiting(from.rank, from.tag)).has_value(); }, at,
             deadline_of(from));
    if (envelope->bytes != data.size()) {
      alarm_->fail(fmt::format("{} expects {} bytes for '{}', but {} sent {}", topology_.name(rank()),
                               data.size(), what, topology_.name(from.rank), envelope->bytes));
    }
    take(*messages_, data, from, at);
  });
}

void GroupCommunicator::bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what) {
  refuse_in_phase(what);
  if (rank() != 0 && rank() != from) return;
  constexpr auto longest = static_cast<std::size_t>(message_bytes);
  for (std::size_t begin = 0; begin < bytes; begin += longest) {
    const std::span<std::byte> piece(data + begin, std::min(longest, bytes - begin));
    if (rank() == 0) receive({from, tag::to_0}, piece, what);
    if (rank() == from) send({0, tag::to_0}, piece, what);
  }
}

std::unique_ptr<Communicator> GroupCommunicator::duplicate(std::string_view what) {
  refuse_in_phase(what);
  return attempt(what, [&]() -> std::unique_ptr<Communicator> {
    if (size() > 1) meet(announce(Call::duplicate, what));
    return make_part(transport_->duplicate());
  });
}

std::unique_ptr<Communicator> GroupCommunicator::split(int colour, std::string_view what) {
  refuse_in_phase(what);
  return attempt(what, [&]() -> std::unique_ptr<Communicator> {
    if (size() > 1) meet(announce(Call::split, what));
    return make_part(transport_->split(colour));
  });
}

std::unique_ptr<Communicator> GroupCommunicator::make_part(std::unique_ptr<Transport> transport) {
  return std::make_unique<GroupCommunicator>(std::move(transport), options_, alarm_, topology_.of(rank()));
}

std::unique_ptr<Mailbox> GroupCommunicator::mailbox(std::string_view what) {
  refuse_in_phase(what);
  return attempt(what, [&] {
    if (size() > 1) meet(announce(Call::duplicate, what));
    return std::make_unique<Mailbox>(transport_->duplicate(), topology_, alarm_, options_.deadline_seconds);
  });
}

std::unique_ptr<Communicator> GroupCommunicator::without(std::span<const int> lost, double deadline_seconds) {
  if (is_part_) throw InternalError("only the communicator of all ranks can continue without some of them");
  broken_ = true;
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank)
    if (std::ranges::find(lost, topology_.number(rank)) != lost.end()) members.push_back(rank);
  const double deadline = deadline_seconds > 0 ? deadline_seconds : options_.deadline_seconds;
  return std::make_unique<GroupCommunicator>(transport_->without(members, deadline), options_, nullptr,
                                             topology_.of(rank()));
}

bool GroupCommunicator::agree(bool yes, double deadline_seconds) {
  return transport_->agree(yes, deadline_seconds > 0 ? deadline_seconds : options_.deadline_seconds);
}

std::optional<std::int64_t> GroupCommunicator::bytes_sent() const {
  if (algorithm_ != nullptr && algorithm_->is_of_library()) return std::nullopt;
  return transport_->bytes_sent() + messages_->bytes_sent();
}

bool GroupCommunicator::leave(int error_status) {
  const bool in_error = error_status != 0;
  if (std::exchange(left_, true) || broken_ || transport_->abandoned()) return false;
  if (size() == 1) return true;
  if (is_part_) return false;
  const double patience =
      in_error ? std::min(seconds_to_leave_in_error, options_.deadline_seconds) : options_.deadline_seconds;
  try {
    const EventSpan span(EventKind::wait, "the end of its work");
    const Call call = in_error ? Call::leave_in_error : Call::leave;
    call_check().meet(announce(call, "", DType::uint8, error_status), patience);
    // All ranks have announced that they leave, but some may have given up waiting and ended. If ranks wait
    // for these in MPI_Finalize, mpirun of Open MPI 4 may hang or crash.
    if (in_error) transport_->abandon();
    return true;
  } catch (const std::exception& error) {
    const auto* loss = dynamic_cast<const RankLost*>(&error);
    // This rank has finished its work, so the loss of a rank does not matter.
    if (loss != nullptr && loss->is_outlived()) return false;
    transport_->abandon();
    if (in_error) return false;
    throw;
  }
}

}  // namespace plexaura

#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "distributed/communicator/communicator.h"
#include "distributed/failure/alarm.h"
#include "distributed/node/all_to_all.h"
#include "distributed/node/call_check.h"
#include "distributed/node/shm_rendezvous.h"
#include "distributed/sums/sum_algorithm.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// A communicator over any transport.
class GroupCommunicator final : public Communicator {
 public:
  // Collective. `alarm` is null for the communicator of all ranks; a duplicate or a split gets the alarm of
  // its parent. `place` describes where this rank runs.
  GroupCommunicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                    std::shared_ptr<Alarm> alarm = nullptr, const ProcessPlace& place = this_place());
  ~GroupCommunicator() override;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  const NodePlace& place() const override { return place_; }

  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override;
  void reduce_scatter(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override;
  void all_gather(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override;
  void all_to_all(std::span<const std::byte> blocks, std::span<std::byte> received,
                  std::string_view what) override;
  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override;
  void bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what) override;
  std::optional<std::int64_t> bytes_sent() const override;
  double deadline_seconds() const override { return options_.deadline_seconds; }
  std::vector<std::string> gather_all(const std::string& mine, std::string_view what) override;
  void barrier(std::string_view what) override;
  void send(const Peer& to, std::span<const std::byte> data, std::string_view what) override;
  void receive(const Peer& from, std::span<std::byte> data, std::string_view what) override;
  std::unique_ptr<Communicator> duplicate(std::string_view what) override;
  std::unique_ptr<Communicator> split(int colour, std::string_view what) override;
  std::unique_ptr<Mailbox> mailbox(std::string_view what) override;
  bool could_outlive_ranks() const override { return transport_->outlives_ranks(); }
  bool outlives_ranks() const override { return options_.outlive_ranks && could_outlive_ranks(); }
  bool agree(bool yes, double deadline_seconds = 0) override;
  std::unique_ptr<Communicator> without(std::span<const int> lost, double deadline_seconds = 0) override;
  void choose_algorithm(std::string_view name) override;
  void bring_shards(int shards) override;
  bool keeps_order() const override { return algorithm_ == nullptr || algorithm_->keeps_order(); }
  SharedWindow allocate_shared(std::size_t bytes, std::string_view what) override;
  void sum_window(SharedWindow& window, std::size_t offset, DType dtype, std::int64_t count,
                  std::string_view what) override;
  void interrupt_waits(bool on) override { alarm_->interrupt_waits(on); }
  bool leave(int error_status) override;

 private:
  // Runs a call. If the call throws, marks the communicator as broken, because the ranks may then be at
  // different points.
  template <class F>
  auto attempt(std::string_view what, F&& work) {
    if (broken_ || left_) throw InternalError("the communicator was used after an error or after leave()");
    const EventSpan span(EventKind::wait, what);
    try {
      return work();
    } catch (const WaitInterrupted&) {
      broken_ = true;
      throw;
    } catch (const std::exception&) {
      broken_ = true;
      transport_->abandon();
      messages_->abandon();
      throw;
    }
  }
  template <class Ready>
  void wait_for(Ready&& ready, const CallSignature& at, double deadline);
  void take(Transport& transport, std::span<std::byte> data, const Peer& from, const CallSignature& at);
  void empty(Outbox& outbox, const CallSignature& at, double deadline, std::size_t down_to = 0);
  double deadline_of(const Peer& peer) const;

  CallCheck& call_check();
  std::uint8_t meet(const CallSignature& call);
  void meet_for_sum(CallSignature& call);
  void find_topology(ProcessPlace own);
  void agree_to_share();
  void share_control_memory();
  SumMeans sum_means(PaceChoice& paces);
  void check_room(std::size_t bytes, std::string_view what);
  std::optional<SharedWindow> try_to_share(std::size_t bytes, const CallSignature& at);
  std::vector<SharedSegment> open_segments(std::size_t bytes, const CallSignature& at, std::string& problem);
  std::span<std::byte*> arrays_at(const SharedWindow& window, std::size_t offset);
  std::unique_ptr<Communicator> make_part(std::unique_ptr<Transport> transport);
  void spread(std::byte* data, std::size_t bytes, int root, const CallSignature& at);
  std::vector<std::string> collect(const std::string& mine, const CallSignature& at);
  std::string gather_at_root(const std::string& mine, const CallSignature& at);
  void check_peer(const Peer& peer) const;

  CommunicatorOptions options_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Transport> messages_;  // transport of send() and receive()
  Outbox outbox_;                        // sends messages over transport_
  Outbox users_outbox_;
  bool is_part_;
  std::shared_ptr<Alarm> alarm_;
  bool broken_ = false;
  bool left_ = false;
  int exceptions_at_start_;
  Topology topology_;
  NodePlace place_;
  std::unique_ptr<CallCheck> message_call_check_;
  // Memory of the node's rendezvous, followed by the staging area of sums.
  std::optional<SharedWindow> control_;
  std::unique_ptr<ShmRendezvous> rendezvous_;  // null if the ranks of this node do not share memory
  std::vector<std::byte*> arrays_;             // returned by arrays_at(); kept to avoid allocations
  std::vector<std::byte> arriving_;            // buffer that receives messages in take()
  // The times of earlier calls, for each algorithm that was chosen.
  std::map<std::string, PaceChoice, std::less<>> paces_;
  std::unique_ptr<SumAlgorithm> algorithm_;  // the present algorithm of sums; null if there is one rank
  AllToAll all_to_all_;
  // The shards whose sum each rank passes to calls. Empty: each rank has one shard.
  std::vector<ShardRange> shards_;
};

}  // namespace plexaura

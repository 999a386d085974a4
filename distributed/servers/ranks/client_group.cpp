#include "distributed/servers/ranks/client_group.h"

#include <array>
#include <exception>
#include <fmt/format.h>
#include <span>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "distributed/exchange/bucket_name.h"
#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view size_name = "group";
constexpr int tag = 0;
// The seconds to wait for messages that depend on the work of other clients.
constexpr double patience_for_others_seconds = 3600;

}  // namespace

ClientGroup::ClientGroup(std::unique_ptr<Communicator> trainers, int size, ParameterClient* client,
                         bool may_wait)
    : trainers_(std::move(trainers)),
      ranks_(trainers_->split(trainers_->rank() / size, "the ranks of a client")),
      client_(client),
      // The lowest rank has its own deadline with the server, and should be the first to report an error.
      patience_seconds_(may_wait ? patience_for_others_seconds : 2 * ranks_->deadline_seconds()) {}

void ClientGroup::begin(WeightsImmigration& border) {
  border_ = &border;
  weights_.emplace(border);
  for (const Bucket& bucket : border.buckets()) with_elements(bucket.dtype, [](auto) {});
  final_.assign(border.buckets().size(), nullptr);
}

std::vector<StrategyState> ClientGroup::state() const {
  return {{std::string(size_name), Tensor::scalar(static_cast<std::int64_t>(ranks_->size()))}};
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a strategy may keep it
void ClientGroup::take_state(std::vector<StrategyState> state) {
  for (const StrategyState& part : state)
    if (part.name == size_name) saved_size_ = part.value.as<std::int64_t>()[0];
}

void ClientGroup::check_beginning(const DealtSteps& steps) {
  if (std::exchange(has_drawn_, true) || steps.behind == 0 || saved_size_ % ranks_->size() == 0) return;
  const UserError error(fmt::format(
      "the checkpoint is {} and distributed.group is {}, so that ranks of one client might have other "
      "states of the optimizer; resume with the same group, or start from the weights alone with --weights",
      saved_size_ == 1 ? "not of clients of several ranks"
                       : fmt::format("of clients of {} ranks", saved_size_),
      ranks_->size()));
  agree_on_error(*trainers_, std::make_exception_ptr(error), "the groups of clients");
}

// Returns true if all ranks of the group are about to make the same call. After the first false, the ranks
// make no more calls together.
bool ClientGroup::meet(Meeting& meeting) {
  if (has_failed_) return false;
  meeting.stops = wants_stop_ ? 1 : 0;
  ranks_->sum(DType::float64, reinterpret_cast<std::byte*>(&meeting), sizeof meeting / sizeof(double),
              "what the ranks of a client are about to do");
  const double all = ranks_->size();
  has_failed_ = meeting.draws != all && meeting.steps != all && meeting.rests != all;
  if (client_ != nullptr && meeting.stops > 0) client_->stop();
  return !has_failed_;
}

Draw ClientGroup::draw(const DealtSteps& steps) {
  check_beginning(steps);
  if (has_rested_)
    throw DeviceError("the ranks of a client did not do the same, though none has failed; this is a fault");
  Meeting meeting{.draws = 1};
  if (!meet(meeting)) return end_deal(steps);
  // Number of the step, and of the block of parts; negative: none is left.
  std::array<std::int64_t, 2> drawn{};
  if (client_ != nullptr) {
    const Draw block = client_->draw(blocks_of(steps));
    drawn = {block.step_in_epoch, block.part.value_or(-1)};
  }
  share(drawn, patience_seconds_, "the next part of the epoch");
  const auto [step, block] = drawn;
  if (block < 0) return {step};
  return {step, block * ranks_->size() + ranks_->rank()};
}

// Counts the parts of a step in blocks of one part for each rank. The last block may have fewer parts than there are ranks.
DealtSteps ClientGroup::blocks_of(DealtSteps steps) const {
  const std::int64_t size = ranks_->size();
  steps.parts = (steps.parts + size - 1) / size;
  steps.parts_of_last = (steps.parts_of_last + size - 1) / size;
  return steps;
}

// Draws all parts that are left in the deal. The run is about to end, so no rank trains on them.
Draw ClientGroup::end_deal(const DealtSteps& steps) {
  if (client_ == nullptr) return {steps.first};
  client_->stop();
  while (true)
    if (const Draw drawn = client_->draw(blocks_of(steps)); !drawn.part) return drawn;
}

UpdateAnswer ClientGroup::before_update(std::size_t bucket) {
  final_[bucket]->wait();
  if (bucket == 0) {
    const auto samples = static_cast<double>(border_->place().samples);
    Meeting meeting{.steps = 1, .samples = samples};
    if (meet(meeting)) weight_ = samples / meeting.samples;
  }
  if (has_failed_) return {};
  const DType dtype = border_->buckets()[bucket].dtype;
  const std::span<std::byte> bytes = border_->gradients(bucket).first(averaged(bucket) * size_of(dtype));
  with_elements(dtype, [&]<class T>(T) {
    for (T& element : elements_of<T>(bytes)) element *= static_cast<T>(weight_);
  });
  ranks_->sum(dtype, bytes.data(), static_cast<std::int64_t>(averaged(bucket)),
              BucketName(bucket, border_->step()));
  return {};
}

// Returns the number of elements that are averaged. The tail, at the end of the last bucket, is not averaged.
std::size_t ClientGroup::averaged(std::size_t bucket) const {
  const bool is_last = bucket + 1 == border_->buckets().size();
  return static_cast<std::size_t>(border_->buckets()[bucket].count - (is_last ? tail_count : 0));
}

void ClientGroup::after_update() {
  if (!has_failed_)
    share_weights(client_ != nullptr && client_->count_step(), patience_seconds_,
                  "the weights of the server");
}

void ClientGroup::show_weights() {
  Meeting meeting{.rests = 1};
  const bool are_together = meet(meeting);
  if (client_ != nullptr) client_->show_weights();
  wants_stop_ = false;
  has_rested_ = !are_together;
  if (!are_together) return;
  share_weights(client_ != nullptr, patience_for_others_seconds, "the weights of all clients");
  share_state();
}

// Sends the optimizer's state of the lowest rank to the others. Different kinds of processors may round
// updates differently, so the states would drift apart.
void ClientGroup::share_state() {
  std::vector<std::byte> state = border_->emigrate_state();
  ranks_->broadcast(state.data(), state.size(), 0, "the optimizer's state of a client");
  if (client_ == nullptr) border_->immigrate_state(state, border_->placement());
}

// Sends the value of the lowest rank to the others.
template <class T>
void ClientGroup::share(T& value, double patience_seconds, std::string_view what) {
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&value, 1));
  if (client_ == nullptr) return ranks_->receive({0, tag, patience_seconds}, bytes, what);
  for (int rank = 1; rank < ranks_->size(); ++rank) ranks_->send({rank, tag}, bytes, what);
}

// Sends the weights to the other ranks of the group. `are_new` is true, on the lowest rank, if it has got
// weights from the server.
void ClientGroup::share_weights(bool are_new, double patience_seconds, std::string_view what) {
  std::int64_t follow = are_new ? 1 : 0;
  share(follow, patience_seconds, what);
  if (follow == 0) return;
  const std::span<std::byte> own = weights_->fetch();
  ranks_->broadcast(own.data(), own.size(), 0, what);
  if (client_ == nullptr) weights_->store();
}

}  // namespace plexaura

#include "distributed/communicator/roles.h"

#include <cstring>
#include <string>
#include <string_view>

#include "core/base/events.h"
#include "distributed/communicator/long_text.h"
#include "distributed/wire/tags.h"

namespace plexaura {

namespace {

constexpr std::string_view placement_message = "the placement of the parameters, for the ranks that serve";
constexpr std::string_view weights_message = "the weights to begin with, for the ranks that serve";
constexpr std::string_view status_message = "how the run ends, for the ranks that serve";
// The longest time that a serving rank waits: compiling, or the last checkpoint, may take longer than the
// deadline between ranks.
constexpr double roles_patience_seconds = 3600;

}  // namespace

Roles::Roles(Communicator& all, Strategy* strategy, bool is_spare) : all_(all), is_spare_(is_spare) {
  const bool serves = strategy_or_none(strategy).parts().server != nullptr;
  const std::string mine = is_spare ? "waits" : serves ? "serves" : "trains";
  const std::vector<std::string> roles = all.gather_all(mine, "the roles of the ranks");
  for (int rank = 0; rank < all.size(); ++rank) {
    const std::string& role = roles[static_cast<std::size_t>(rank)];
    if (role == "waits") has_spares_ = true;
    if (role == "serves") serving_.push_back(rank);
    if (role == "trains" && trainers_++ == 0) first_trainer_ = rank;
  }
  if (trainers_ == 0) {
    const UserError error(
        "all ranks serve and none trains; start more ranks, or choose another distributed.strategy");
    agree_on_error(all, std::make_exception_ptr(error), "the roles of the ranks");
  }
  if (trainers_ < all.size()) split_ = all.split(mine == "trains" ? 0 : 1, "the ranks that train");
  if (mine == "trains") training_ = split_ ? split_.get() : &all;
}

// Sends a text from the lowest rank that trains to all ranks that serve.
void Roles::report_serving(std::string_view text, std::string_view what) const {
  if (all_.rank() != first_trainer_) return;
  for (const int rank : serving_) send_text(all_, {rank, tag::roles}, text, what);
}

std::string Roles::hear(std::string_view what) const {
  std::string text;
  const Peer trainer{first_trainer_, tag::roles, roles_patience_seconds};
  receive_text(
      all_, trainer, [&](std::string_view piece) { text += piece; }, what);
  return text;
}

// Weights are sent in logical layout.
void Roles::share_parameters(const ParameterStore& store) const {
  if (serving_.empty() || all_.rank() != first_trainer_) return;
  report_serving(to_text(store.placement()), placement_message);
  for (const ParameterSpec& spec : store.specs()) {
    const Tensor value = store.read(spec.name);
    report_serving({reinterpret_cast<const char*>(value.data()), value.bytes()}, weights_message);
  }
}

void Roles::serve(Strategy& strategy, ParameterStore& store, Backend& backend,
                  std::int64_t bucket_bytes) const {
  report_event(EventKind::serves);
  store.place(parse_placement(hear(placement_message)), backend);
  for (const ParameterSpec& spec : store.specs()) {
    Tensor value(spec.type);
    const std::string bytes = hear(weights_message);
    std::memcpy(value.data(), bytes.data(), value.bytes());
    store.write(spec.name, value);
  }
  WeightsImmigration border(store, bucket_bytes);
  strategy.begin(border);
  strategy.parts().server->serve(border);
}

int Roles::share_status(int mine) const {
  if (serves()) return std::stoi(hear(status_message));
  report_serving(std::to_string(mine), status_message);
  return mine;
}

}  // namespace plexaura

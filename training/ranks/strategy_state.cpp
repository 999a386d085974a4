#include "training/ranks/strategy_state.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

namespace {

constexpr const char* what = "the state of the strategy";
constexpr std::string_view shared_prefix = "shared.";

constexpr std::string_view store_prefix = "store/";  // prefix that no tensor of a strategy's own has

std::string prefix_of(int rank) { return fmt::format("rank{}.", rank); }
std::string own_value_name(const std::string& name) { return fmt::format("{}value/{}", store_prefix, name); }
std::string own_state_name(std::int64_t index, const std::string& name) {
  return fmt::format("{}state{}/{}", store_prefix, index, name);
}

bool weights_differ(Collective& ranks, const ParameterStore& store) {
  const std::string mine = together(ranks, what, [&] { return std::to_string(weights_hash(store)); });
  const std::vector<std::string> all = ranks.gather_all(mine, what);
  return std::ranges::any_of(all, [&](const std::string& theirs) { return theirs != all[0]; });
}

SavedStrategy parts_of(const ParameterStore& store, bool with_values) {
  SavedStrategy parts;
  for (const ParameterSpec& spec : store.specs()) {
    if (with_values) parts.emplace_back(own_value_name(spec.name), store.read(spec.name));
    for (std::int64_t i = 0; i < store.states() && spec.role == ParameterRole::trainable; ++i)
      parts.emplace_back(own_state_name(i, spec.name), store.read_state(i, spec.name));
  }
  return parts;
}

void check_state_names(const std::vector<StrategyState>& state) {
  std::set<std::pair<bool, std::string_view>> names;
  for (const StrategyState& part : state)
    if (!is_parameter_name(part.name) || !names.insert({part.of_rank, part.name}).second)
      throw UserError(fmt::format(
          "the strategy names a part of its state '{}'; give each part a name of its own, of letters and "
          "digits of ASCII, '_', '-' and dots",
          part.name));
}

// Packs each tensor as a line, "name dtype sizes...", followed by its bytes.
std::string packed_strategy(const SavedStrategy& state) {
  std::string packed;
  for (const auto& [name, value] : state) {
    packed += fmt::format("{} {}", name, static_cast<int>(value.dtype()));
    for (const std::int64_t extent : value.shape()) packed += fmt::format(" {}", extent);
    packed += '\n';
    packed.append(reinterpret_cast<const char*>(value.data()), value.bytes());
  }
  return packed;
}

SavedStrategy unpack(const std::string& packed) {
  SavedStrategy state;
  for (std::size_t at = 0; at < packed.size();) {
    const std::size_t end = packed.find('\n', at);
    std::istringstream line(packed.substr(at, end - at));
    std::string name;
    int dtype = 0;
    line >> name >> dtype;
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = 0; line >> size;) sizes.push_back(size);
    Tensor value(TensorType{static_cast<DType>(dtype), Shape(sizes)});
    std::memcpy(value.data(), packed.data() + end + 1, value.bytes());
    at = end + 1 + value.bytes();
    state.emplace_back(std::move(name), std::move(value));
  }
  return state;
}

// Sends texts to rank 0 in pieces of about a second. All ranks meet after each piece, so that ranks that
// neither send nor receive wait no longer than that.
class BringPieces {
 public:
  explicit BringPieces(Collective& ranks) : ranks_(ranks) {}

  // Sends the text of rank `from` to rank 0. All ranks know its size, `bytes`.
  void bring(std::string& text, std::size_t bytes, int from) {
    for (std::size_t begin = 0; begin < bytes;) {
      const std::size_t piece = std::min(left_, bytes - begin);
      std::byte* const data = text.empty() ? nullptr : reinterpret_cast<std::byte*>(text.data()) + begin;
      ranks_.bring_to_0(data, piece, from, what);
      begin += piece;
      left_ -= piece;
      if (left_ == 0) meet();
    }
  }

 private:
  // Lets all ranks meet. Rank 0 determines the size of the next piece.
  void meet() {
    const double now = seconds_now();
    std::uint64_t next = next_piece(now - began_);
    ranks_.broadcast(reinterpret_cast<std::byte*>(&next), sizeof next, 0, what);
    left_ = piece_ = static_cast<std::size_t>(next);
    began_ = now;
  }
  std::size_t next_piece(double seconds) const {
    constexpr double least = 1 << 16;
    constexpr double fastest_growth = 8;  // factor by which a piece may grow; one measurement is not reliable
    const auto last = static_cast<double>(piece_);
    return static_cast<std::size_t>(
        std::clamp(last / std::max(seconds, 1e-9), least, std::max(fastest_growth * last, least)));
  }

  Collective& ranks_;
  std::size_t piece_ = 1 << 20;  // size of the current piece in bytes
  std::size_t left_ = piece_;    // bytes until the next meeting of the ranks
  double began_ = seconds_now();
};

}  // namespace

std::vector<StrategyState> state_of_strategy(const KeptState* kept) {
  return kept != nullptr ? kept->state() : std::vector<StrategyState>();
}

// Gathers the states of all ranks on rank 0. Ranks send one after another, so that only rank 0 needs memory
// for all states.
SavedStrategy gather_strategy_state(Collective& ranks, const std::vector<StrategyState>& mine,
                                    const ParameterStore* own_store) {
  const bool with_values = own_store != nullptr && weights_differ(ranks, *own_store);
  SavedStrategy saved;
  const std::string packed = together(ranks, what, [&] {
    check_state_names(mine);
    SavedStrategy own;
    for (const StrategyState& part : mine)
      if (part.of_rank) own.emplace_back(prefix_of(ranks.rank()) + part.name, part.value);
    if (ranks.rank() != 0 && own_store != nullptr)
      for (auto& [name, value] : parts_of(*own_store, with_values))
        own.emplace_back(prefix_of(ranks.rank()) + name, std::move(value));
    if (ranks.rank() != 0) return packed_strategy(own);
    for (const StrategyState& part : mine)
      if (!part.of_rank) saved.emplace_back(std::string(shared_prefix) + part.name, part.value);
    saved.insert(saved.end(), own.begin(), own.end());
    return std::string();
  });
  const std::vector<std::string> sizes = ranks.gather_all(std::to_string(packed.size()), what);
  BringPieces pieces(ranks);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    std::string theirs = rank == ranks.rank() ? packed : std::string();
    const std::size_t size = std::stoull(sizes[static_cast<std::size_t>(rank)]);
    if (ranks.rank() == 0) theirs.resize(size);
    pieces.bring(theirs, size, rank);
    if (ranks.rank() != 0) continue;
    SavedStrategy more = unpack(theirs);
    std::ranges::move(more, std::back_inserter(saved));
  }
  return saved;
}

bool is_state_of(int rank, std::string_view name) {
  return name.starts_with(shared_prefix) || name.starts_with(prefix_of(rank));
}

void take_own_store(const SavedStrategy& saved, int rank, ParameterStore& store) {
  const std::string own = prefix_of(rank);
  const auto find = [&](const std::string& name) {
    return std::ranges::find(saved, own + name, &SavedStrategy::value_type::first);
  };
  for (const ParameterSpec& spec : store.specs()) {
    if (const auto value = find(own_value_name(spec.name)); value != saved.end())
      store.write(spec.name, value->second);
    for (std::int64_t i = 0; i < store.states() && spec.role == ParameterRole::trainable; ++i)
      if (const auto state = find(own_state_name(i, spec.name)); state != saved.end())
        store.write_state(i, spec.name, state->second);
  }
}

std::vector<StrategyState> strategy_state_of(const SavedStrategy& saved, int rank, bool of_ranks) {
  const std::string own = prefix_of(rank);
  std::vector<StrategyState> state;
  for (const auto& [name, value] : saved) {
    if (name.starts_with(shared_prefix)) state.push_back({name.substr(shared_prefix.size()), value});
    if (of_ranks && name.starts_with(own) && !name.starts_with(own + std::string(store_prefix)))
      state.push_back({name.substr(own.size()), value, true});
  }
  return state;
}

SavedStrategy gather_strategy_state(Collective& ranks, const KeptState* kept, const ParameterStore* own) {
  return gather_strategy_state(ranks, together(ranks, what, [&] { return state_of_strategy(kept); }), own);
}

void restore_strategy_state(const SavedStrategy& saved, int rank, bool of_ranks, KeptState* kept) {
  if (kept != nullptr && !saved.empty()) kept->take_state(strategy_state_of(saved, rank, of_ranks));
}

}  // namespace plexaura

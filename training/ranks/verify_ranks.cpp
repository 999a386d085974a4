#include "training/ranks/verify_ranks.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/base/print.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

namespace {

constexpr const char* comparison = "the comparison of the weights of all ranks";
constexpr std::size_t digits = 16;  // number of digits in a hash

// One tensor that is compared: a parameter or buffer, the optimizer's state of a parameter, or the loss
// scale.
struct StoredTensor {
  std::string name;         // name of the parameter or buffer; empty: the loss scale
  std::int64_t state = -1;  // number of the optimizer's state; -1: the value, or the loss scale

  std::string label() const {
    if (name.empty()) return "the loss scale";
    return state < 0 ? name : fmt::format("state {} of the optimizer for {}", state, name);
  }
  Tensor read(const ParameterStore& store) const {
    if (name.empty()) return as_tensor(store.read_loss_scale());
    return state < 0 ? store.read(name) : store.read_state(state, name);
  }
  void write(ParameterStore& store, const Tensor& value) const {
    if (name.empty()) return store.write_loss_scale(as_loss_scale(value));
    state < 0 ? store.write(name, value) : store.write_state(state, name, value);
  }

  static Tensor as_tensor(const LossScale& scale) {
    return Tensor::of<float>({scaling_count}, {scale.scale, scale.good_steps, scale.skipped_steps});
  }
  static LossScale as_loss_scale(const Tensor& tensor) {
    const std::span<const float> of = tensor.as<float>();
    return {of[0], of[1], of[2]};
  }
};

std::vector<StoredTensor> stored_tensors(const ParameterStore& store) {
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& spec : store.specs()) tensors.push_back({spec.name});
  for (std::int64_t state = 0; state < store.states(); ++state)
    for (const ParameterSpec& spec : store.specs())
      if (spec.role == ParameterRole::trainable) tensors.push_back({spec.name, state});
  if (store.types().scales_loss()) tensors.emplace_back();
  return tensors;
}

std::string hashes_of(const ParameterStore& store, const std::vector<StoredTensor>& tensors) {
  std::string hashes;
  for (const StoredTensor& each : tensors)
    fmt::format_to(std::back_inserter(hashes), "{:016x}", hash_of(each.read(store), fnv_start));
  return hashes;
}

bool all_equal(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [&](const std::string& text) { return text == texts[0]; });
}

// Maps the hash of each version of a tensor to the ranks that have it.
using Holders = std::map<std::string_view, std::vector<int>>;

struct Difference {
  StoredTensor tensor;
  Holders holders;

  // Returns the ranks of the version that more than half of all ranks have. Returns null if there is no such
  // version.
  const std::vector<int>* majority(int ranks) const {
    const auto found = std::ranges::find_if(
        holders, [&](const auto& each) { return 2 * each.second.size() > static_cast<std::size_t>(ranks); });
    return found == holders.end() ? nullptr : &found->second;
  }
};

std::vector<Difference> differences(const std::vector<StoredTensor>& tensors,
                                    const std::vector<std::string>& hashes) {
  std::vector<Difference> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Holders holders;
    for (std::size_t rank = 0; rank < hashes.size(); ++rank)
      holders[std::string_view(hashes[rank]).substr(i * digits, digits)].push_back(static_cast<int>(rank));
    if (holders.size() > 1) found.push_back({tensors[i], std::move(holders)});
  }
  return found;
}

void check_majority(Collective& ranks, const Difference& difference, std::int64_t step) {
  together(ranks, comparison, [&] {
    if (difference.majority(ranks.size()) != nullptr) return;
    throw DeviceError(fmt::format(
        "after step {} the {} ranks hold different bits in {}, and no majority shows which are "
        "right: the memory or the processor of a rank is faulty, or a strategy of your own treats ranks "
        "differently; check the machines, and continue from the last checkpoint with --resume",
        step, ranks.size(), difference.tensor.label()));
  });
}

// Sends the majority's tensor to the ranks that have other bits.
void mend(Collective& ranks, ParameterStore& store, const Difference& difference, std::int64_t step,
          const std::vector<std::string>& names) {
  const std::vector<int>& right = *difference.majority(ranks.size());
  Tensor value = together(ranks, comparison, [&] { return difference.tensor.read(store); });
  ranks.broadcast(value.data(), value.bytes(), right.front(), comparison);
  const auto is_right = [&](int rank) { return std::ranges::find(right, rank) != right.end(); };
  together(ranks, comparison, [&] {
    if (!is_right(ranks.rank())) difference.tensor.write(store, value);
  });
  if (ranks.rank() != 0) return;
  std::vector<std::string> wrong;
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (!is_right(rank)) wrong.push_back(names[static_cast<std::size_t>(rank)]);
  print_error(
      fmt::format("after step {} {} {} held other bits than the rest in {}, and {} taken theirs: check the "
                  "memory and the processor there",
                  step, wrong.size() == 1 ? "rank" : "ranks", fmt::join(wrong, " and "),
                  difference.tensor.label(), wrong.size() == 1 ? "has" : "have"));
}

}  // namespace

void verify_ranks(Collective& ranks, ParameterStore& store, std::int64_t step, int number) {
  const std::vector<StoredTensor> tensors = stored_tensors(store);
  const std::string mine = together(ranks, comparison, [&] { return hashes_of(store, tensors); });
  if (all_equal(ranks.gather_all(fmt::format("{:016x}", fnv(mine)), comparison))) return;
  const std::vector<std::string> hashes = ranks.gather_all(mine, comparison);
  const std::vector<Difference> found = differences(tensors, hashes);
  for (const Difference& difference : found) check_majority(ranks, difference, step);
  const std::vector<std::string> names = ranks.gather_all(std::to_string(number), comparison);
  for (const Difference& difference : found) mend(ranks, store, difference, step, names);
}

}  // namespace plexaura

#include "distributed/communicator/handshake.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <vector>

#include "distributed/wire/failure.h"
#include "distributed/wire/texts.h"

namespace plexaura {
namespace {

using Facts = std::map<std::string, std::string>;

std::string shorten(const std::string& value) {
  constexpr std::size_t longest_shown = 100;
  return value.size() <= longest_shown ? value : fmt::format("{}…", value.substr(0, longest_shown));
}

std::string value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "nothing" : fmt::format("'{}'", shorten(found->second));
}

// Compares one fact: returns a sentence with its values and the ranks that have each, or nothing if all ranks
// have one value.
std::optional<std::string> describe_difference(const std::vector<Facts>& all, const std::string& name) {
  const auto raw = [&](const Facts& facts) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::optional<std::string>() : found->second;
  };
  std::map<std::optional<std::string>, std::vector<int>> holders;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    holders[raw(all[static_cast<std::size_t>(rank)])].push_back(rank);
  }
  if (holders.size() == 1) return std::nullopt;
  auto most = holders.find(raw(all.front()));
  for (auto it = holders.begin(); it != holders.end(); ++it) {
    if (it->second.size() > most->second.size()) most = it;
  }
  std::string differing;
  for (const auto& [value, ranks] : holders) {
    if (value == most->first) continue;
    differing += fmt::format("{}{} {} {}", differing.empty() ? "" : ", ", list_ranks(ranks),
                             ranks.size() == 1 ? "has" : "have",
                             value_of(all[static_cast<std::size_t>(ranks.front())], name));
  }
  const std::vector<int>& usual = most->second;
  return fmt::format("the ranks differ in '{}': {}, but {} {} {}", name, differing, list_ranks(usual),
                     usual.size() == 1 ? "has" : "have",
                     value_of(all[static_cast<std::size_t>(usual.front())], name));
}

std::vector<Facts> exchange(Collective& collective, const Facts& facts) {
  std::vector<Facts> all;
  for (const std::string& text : collective.gather_all(pack_facts(facts), "the comparison of the ranks"))
    all.push_back(unpack_facts(text));
  return all;
}

std::optional<std::string> first_difference(const std::vector<Facts>& all) {
  std::set<std::string> names;
  for (const Facts& facts : all) {
    for (const auto& [name, value] : facts) names.insert(name);
  }
  for (const std::string& name : names) {
    if (auto difference = describe_difference(all, name)) return difference;
  }
  return std::nullopt;
}

[[noreturn]] void throw_on_all(Collective& collective, const std::string& text) {
  if (collective.rank() == 0) throw UserError(text);
  throw Remote<UserError>(0, text);
}

}  // namespace

void check_agreement(Collective& collective, const std::map<std::string, std::string>& facts) {
  const std::optional<std::string> difference = first_difference(exchange(collective, facts));
  if (!difference) return;
  throw_on_all(collective, *difference + ": start all ranks with the same");
}

void check_all_or_none(Collective& collective, bool found, std::string_view what) {
  std::vector<int> with;
  std::vector<int> without;
  for (const std::string& text : collective.gather_all(found ? "found" : "", what)) {
    std::vector<int>& ranks = text.empty() ? without : with;
    ranks.push_back(static_cast<int>(with.size() + without.size()));
  }
  if (with.empty() || without.empty()) return;
  throw_on_all(collective,
               fmt::format("{} found {} and {} did not: all ranks must be able to read the same files",
                           list_ranks(with), what, list_ranks(without)));
}

std::string find_difference(Collective& collective, std::string_view name, const std::string& value) {
  return first_difference(exchange(collective, {{std::string(name), value}})).value_or("");
}

}  // namespace plexaura

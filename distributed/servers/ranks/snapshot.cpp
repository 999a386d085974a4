#include "distributed/servers/ranks/snapshot.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <sstream>
#include <utility>
#include <vector>

#include "distributed/servers/ranks/letters.h"

namespace plexaura {

std::string account_of(const PartDeal& deal, const ClientTable& table) { return deal.pack() + table.pack(); }

void take_account(const Letter& snapshot, std::size_t weights, PartDeal& deal, ClientTable& table) {
  const auto text = content_of(snapshot).subspan(weights);
  std::istringstream packed(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  deal.unpack(packed);
  table.unpack(packed);
}

Snapshot newest_of(Communicator& ranks, const Snapshot& mine) {
  constexpr const char* what = "the newest weights of the server that any rank has";
  // The number of a snapshot and its bytes. A negative number means that there is no snapshot.
  using Offer = std::pair<std::int64_t, std::size_t>;
  const Offer own = mine ? Offer(head_of(*mine).number, mine->bytes.size()) : Offer(-1, 0);
  std::vector<Offer> offers;
  for (const std::string& text : ranks.gather_all(fmt::format("{} {}", own.first, own.second), what))
    std::istringstream(text) >> offers.emplace_back().first >> offers.back().second;
  const auto newest = std::ranges::max_element(offers, {}, &Offer::first);
  if (newest->first < 0) return nullptr;
  const int holder = static_cast<int>(newest - offers.begin());
  Letter letter{holder, {}};
  if (ranks.rank() == holder) letter.bytes = mine->bytes;
  letter.bytes.resize(newest->second);
  ranks.broadcast(letter.bytes.data(), letter.bytes.size(), holder, what);
  return std::make_shared<const Letter>(std::move(letter));
}

}  // namespace plexaura

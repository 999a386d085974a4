#include "distributed/servers/client_table.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <istream>

namespace plexaura {

namespace {

std::int64_t class_of(std::int64_t staleness) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(staleness)));
}

}  // namespace

void ClientTable::add_push(int client, std::int64_t steps, std::int64_t staleness) {
  Client& pushing = clients_.at(client);
  pushing.steps += steps;
  ++pushing.pushes;
  pushing.staleness += staleness;
  ++pushes_[class_of(staleness)];
}

void ClientTable::set_times(int client, double waited_seconds, double elapsed_seconds) {
  clients_.at(client).waited_seconds = waited_seconds;
  clients_.at(client).elapsed_seconds = elapsed_seconds;
}

void ClientTable::keep_alive(const std::vector<int>& clients, int server) {
  for (auto& [number, client] : clients_) {
    client.serves = number == server;
    client.died = !client.serves && std::ranges::find(clients, number) == clients.end();
  }
}

// Packs no deaths: the server that unpacks the table finds out which clients live.
std::string ClientTable::pack() const {
  std::string text = fmt::format("{}\n", clients_.size());
  for (const auto& [number, client] : clients_)
    text += fmt::format("{} {} {} {} {} {}\n", number, client.steps, client.pushes, client.staleness,
                        client.waited_seconds, client.elapsed_seconds);
  text += fmt::format("{}\n", pushes_.size());
  for (const auto& [first, count] : pushes_) text += fmt::format("{} {}\n", first, count);
  return text;
}

void ClientTable::unpack(std::istream& packed) {
  *this = {};
  std::size_t rows = 0;
  for (packed >> rows; rows > 0; --rows) {
    int number = 0;
    packed >> number;
    Client& client = clients_[number];
    packed >> client.steps >> client.pushes >> client.staleness >> client.waited_seconds >>
        client.elapsed_seconds;
  }
  for (packed >> rows; rows > 0; --rows) {
    std::int64_t first = 0;
    packed >> first;
    packed >> pushes_[first];
  }
}

std::string ClientTable::to_text(std::string_view who) const {
  std::string text = fmt::format("  {}    steps   pushes   mean staleness   idle\n", who);
  for (const auto& [number, client] : clients_) {
    const double pushes = static_cast<double>(std::max<std::int64_t>(client.pushes, 1));
    text += fmt::format("  {:>{}} {:>8} {:>8} {:>16.2f} {:>4.1f} %{}\n", number, who.size(), client.steps,
                        client.pushes, static_cast<double>(client.staleness) / pushes,
                        client.elapsed_seconds > 0 ? 100 * client.waited_seconds / client.elapsed_seconds : 0,
                        client.died     ? "  has died"
                        : client.serves ? "  has taken over as server"
                                        : "");
  }
  return text + histogram();
}

std::string ClientTable::histogram() const {
  std::string text = "  pushes by staleness ";
  for (const auto& [first, count] : pushes_)
    text += first < 2 ? fmt::format("  {}: {}", first, count)
                      : fmt::format("  {} to {}: {}", first, 2 * first - 1, count);
  return text + "\n";
}

}  // namespace plexaura

#include "distributed/server/client_table.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

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

void ClientTable::keep_alive(const std::vector<int>& clients) {
  for (auto& [number, client] : clients_) client.died = std::ranges::find(clients, number) == clients.end();
}

std::string ClientTable::to_text() const {
  std::string text = "  rank    steps   pushes   mean staleness   idle\n";
  for (const auto& [number, client] : clients_) {
    const double pushes = static_cast<double>(std::max<std::int64_t>(client.pushes, 1));
    text += fmt::format("  {:>4} {:>8} {:>8} {:>16.2f} {:>4.1f} %{}\n", number, client.steps, client.pushes,
                        static_cast<double>(client.staleness) / pushes,
                        client.elapsed_seconds > 0 ? 100 * client.waited_seconds / client.elapsed_seconds : 0,
                        client.died ? "  has died" : "");
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

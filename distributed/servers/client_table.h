#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// The record that a parameter server keeps of its clients: how much each has pushed, how stale the pushes
// were, and which share of its time each has waited. Clients are numbered by their ranks at the start, or in
// the order in which they joined.
class ClientTable {
 public:
  // Adds a client, or records that a lost client lives again.
  void add(int client) { clients_[client].died = false; }
  void add_push(int client, std::int64_t steps, std::int64_t staleness);
  std::int64_t pushes(int client) const { return clients_.at(client).pushes; }
  void set_times(int client, double waited_seconds, double elapsed_seconds);
  void note_death(int client) { clients_.at(client).died = true; }
  // Records that all clients but these are dead. `server` is the number of a client that has become the
  // server, and so has not died.
  void keep_alive(const std::vector<int>& clients, int server);

  // pack() writes the table as a text for a server that takes over, and unpack() reads such a text.
  std::string pack() const;
  void unpack(std::istream& packed);

  // Returns a table with a row for each client, and the pushes in each class of staleness. `who` is the
  // heading of the clients' numbers.
  std::string to_text(std::string_view who = "rank") const;

 private:
  struct Client {
    std::int64_t steps = 0;
    std::int64_t pushes = 0;
    std::int64_t staleness = 0;  // sum over all pushes of the client
    double waited_seconds = 0;
    double elapsed_seconds = 0;
    bool died = false;
    bool serves = false;
  };
  std::string histogram() const;

  std::map<int, Client> clients_;
  // The number of pushes in each class of staleness. The key is the lowest staleness of a class: 0, 1, 2, 4,
  // 8, ...
  std::map<std::int64_t, std::int64_t> pushes_;
};

}  // namespace plexaura

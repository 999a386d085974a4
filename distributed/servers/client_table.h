#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// The notes of a parameter server about its clients: how much each has pushed, how stale the pushes were, and which share of its time
// each has waited. Clients are numbered: by their ranks at the start, or in the order in which they joined.
class ClientTable {
 public:
  // Adds a client, or notes that a lost one lives again.
  void add(int client) { clients_[client].died = false; }
  void add_push(int client, std::int64_t steps, std::int64_t staleness);
  std::int64_t pushes(int client) const { return clients_.at(client).pushes; }
  void set_times(int client, double waited_seconds, double elapsed_seconds);
  void note_death(int client) { clients_.at(client).died = true; }
  // Notes all clients but these as dead. `server`: the number of a client that has become the server, which has not died.
  void keep_alive(const std::vector<int>& clients, int server);

  // Writes the table as text for a server that takes over, and reads it back.
  std::string pack() const;
  void unpack(std::istream& packed);

  // Returns a row for each client, and how many pushes had which staleness. `who`: the heading of the numbers of clients.
  std::string to_text(std::string_view who = "rank") const;

 private:
  struct Client {
    std::int64_t steps = 0;
    std::int64_t pushes = 0;
    std::int64_t staleness = 0;  // the sum over all pushes
    double waited_seconds = 0;
    double elapsed_seconds = 0;
    bool died = false;
    bool serves = false;
  };
  std::string histogram() const;

  std::map<int, Client> clients_;
  // Pushes by class of staleness. The key is the lowest staleness of a class: 0, 1, 2, 4, 8, ...
  std::map<std::int64_t, std::int64_t> pushes_;
};

}  // namespace plexaura

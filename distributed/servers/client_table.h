#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// What a parameter server notes about its clients: how much each pushed and how stale that was, and what share of its
// time it waited. A client is the number of its rank at the start.
class ClientTable {
 public:
  // It may have been lost before.
  void add(int client) { clients_[client].died = false; }
  void add_push(int client, std::int64_t steps, std::int64_t staleness);
  std::int64_t pushes(int client) const { return clients_.at(client).pushes; }
  void set_times(int client, double waited_seconds, double elapsed_seconds);
  void note_death(int client) { clients_.at(client).died = true; }
  // All others have died, but for a client that has become the server.
  void keep_alive(const std::vector<int>& clients, int server);

  // For a server that goes on.
  std::string pack() const;
  void unpack(std::istream& packed);

  // A row for each client, and how many pushes had which staleness. `who`: what the numbers are of.
  std::string to_text(std::string_view who = "rank") const;

 private:
  struct Client {
    std::int64_t steps = 0;
    std::int64_t pushes = 0;
    std::int64_t staleness = 0;  // of all pushes
    double waited_seconds = 0;
    double elapsed_seconds = 0;
    bool died = false;
    bool serves = false;
  };
  std::string histogram() const;

  std::map<int, Client> clients_;
  std::map<std::int64_t, std::int64_t> pushes_;  // by the lowest staleness of their class: 0, 1, 2, 4, 8, ...
};

}  // namespace plexaura

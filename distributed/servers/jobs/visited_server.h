#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "distributed/servers/client_table.h"
#include "distributed/servers/jobs/connection.h"
#include "distributed/servers/jobs/door.h"
#include "distributed/servers/jobs/line.h"
#include "distributed/servers/jobs/logical_weights.h"
#include "distributed/servers/jobs/recent_pushes.h"
#include "distributed/servers/jobs/server_file.h"
#include "distributed/servers/push_judge.h"
#include "distributed/servers/server_rule.h"

namespace plexaura {

using VisitFacts = std::map<std::string, std::string>;

struct VisitedServerOptions {
  ServerRule rule = {};
  double push_limit = PushJudge::default_limit;  // see PushJudge
  // The server ends when no client is connected and this number of clients has left, or has been lost for
  // longer than the deadline.
  int clients = 1;
  ListenAt listen = {};
  double deadline_seconds = 60;  // a client may be silent, or away, for so long
  VisitFacts samples = {};       // what a client needs in order to read its samples as the others do
  VisitFacts facts = {};         // what must be equal at a client, besides the parameters
};

class VisitedServer;

// The functions of the program that the server calls.
struct VisitedServerHost {
  std::function<bool()> is_to_end;                   // asked several times a second
  std::function<void(const VisitedServer&)> pushed;  // called after each push, before its answer
  // Called if pushes from `version` on may be of a client whose training diverged. Keeps the last checkpoint from before them and
  // returns its name; empty if there is none.
  std::function<std::string(std::int64_t version)> keep_before;
  std::function<void(const std::string& sentence)> say;   // reports clients that come and go
  std::function<void(const std::string& sentence)> warn;  // reports clients that are lost or refused
};

// An asynchronous parameter server whose clients are jobs of their own. They join while it runs, push like the clients of
// ParameterServer, and leave or are lost. No client waits for another one. The server deals out no data. If PushJudge refuses a push,
// the server sends the client the reason and counts it as lost. A connection without the key of the file, or with messages that
// no client sends, is closed. Such connections cannot use up the memory, descriptors or time of the server.
class VisitedServer {
 public:
  // Listens, and writes its address into the file. `weights`: all weights to begin with. Throws UserError as ServerFile and listen_at()
  // do.
  VisitedServer(const std::filesystem::path& file, LogicalWeights form, std::vector<std::byte> weights,
                VisitedServerOptions options, VisitedServerHost host);
  VisitedServer(const VisitedServer&) = delete;
  VisitedServer& operator=(const VisitedServer&) = delete;

  // Continues from the version and the account of another server, whose clients may come back.
  void continue_from(std::int64_t version, const std::string& account);
  // Serves until all clients have finished, and returns true; or until is_to_end(), and returns false. Throws DeviceError if all
  // clients were lost.
  bool serve();
  // Accepts a connection as if it had been made at the port. `from`: its name in reports.
  void receive(FileDescriptor socket, const std::string& from);

  std::int64_t version() const { return version_; }
  std::span<const std::byte> weights() const { return weights_; }
  // Returns the oldest version that a client with diverging training may have pushed; version() if none.
  std::int64_t doubted_since() const { return recent_.oldest().value_or(version_); }
  const ClientTable& table() const { return table_; }
  // Returns the table, and the clients that have left or were lost. After serve() has returned true it lists nobody as left, because a
  // run that continues has its own clients.
  std::string account() const;
  const ServerPlace& place() const { return place_; }

 private:
  struct Guest {
    Line line;
    std::string from;
    double heard_at;  // seconds: when bytes last moved; for a guest that has not proven the key, when it came
    std::uint64_t moved = 0;  // bytes that had moved by then
    int number = 0;           // 0: it has not joined
    bool is_refused = false;  // it is refused, and may still read why
    bool is_gone = false;
  };

  bool is_over();
  void await();
  void receive_guests();
  static bool is_stranger(const Guest& guest);
  std::list<Guest>::iterator stranger_to_drop();
  void drop_stranger();
  void attend(Guest& guest);
  void take_letters(Guest& guest);
  void judge_silence(Guest& guest);
  void read(Guest& guest, const LineLetter& letter);
  void join(Guest& guest, const LineLetter& letter);
  std::string difference(const VisitFacts& theirs) const;
  int number_for(std::int64_t wish);
  void take_push(Guest& guest, const LineLetter& letter);
  void send_earlier_pushes(int client, const std::deque<std::int64_t>& versions);
  void refuse(Guest& guest, const std::string& sentence);
  void lose(Guest& guest, const std::string& why);
  void note_loss(Guest& guest, const std::string& why);
  std::size_t joined() const;

  ServerFile file_;
  LogicalWeights form_;
  std::vector<std::byte> weights_;
  VisitedServerOptions options_;
  VisitedServerHost host_;
  std::size_t most_of_facts_ = 0;  // most bytes of the facts of a client
  ServerPlace place_;
  Door door_;
  std::list<Guest> guests_;
  ClientTable table_;
  PushJudge judge_;
  RecentPushes recent_;
  int numbers_ = 0;                // how many numbers were given to clients
  std::set<int> left_;             // clients that have left at the end of their work
  std::map<int, double> lost_at_;  // when each lost client was lost, in seconds
  std::int64_t version_ = 0;
};

}  // namespace plexaura

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
  double push_limit = PushJudge::default_limit;  // limit of the PushJudge
  // The server ends when no client is connected, each lost client has been lost for longer than the deadline,
  // and at least this number of clients has left or is lost.
  int clients = 1;
  ListenAt listen = {};
  double deadline_seconds = 60;  // seconds for which a client may be silent or disconnected
  VisitFacts samples = {};       // facts that a client needs to read its samples as the other clients do
  VisitFacts facts = {};         // facts that must be equal at a client, besides the parameters
};

class VisitedServer;

// The functions of the program that the server calls.
struct VisitedServerHost {
  std::function<bool()> is_to_end;  // returns true if the server shall end; called several times a second
  std::function<void(const VisitedServer&)> pushed;  // called after each accepted push, before its answer
  // Called if pushes from `version` on may come from a client whose training diverged. Keeps the last
  // checkpoint before these pushes and returns its name, or an empty text if there is none.
  std::function<std::string(std::int64_t version)> keep_before;
  std::function<void(const std::string& sentence)> say;   // reports a client that has come or left
  std::function<void(const std::string& sentence)> warn;  // reports a client that is lost or refused
};

// An asynchronous parameter server whose clients are jobs of their own. They join while it runs, push like the clients of
// ParameterServer, and leave or are lost. No client waits for another one. The server deals out no data. If PushJudge refuses a push,
// the server sends the client the reason and counts the client as lost. A connection without the key of the file, or
// with messages that no client sends, is closed. Such connections cannot use up the memory, descriptors or time of
// the server.
class VisitedServer {
 public:
  // Listens, and writes its address into the file. `weights` are all weights at the beginning. Throws the
  // errors of ServerFile and listen_at().
  VisitedServer(const std::filesystem::path& file, LogicalWeights form, std::vector<std::byte> weights,
                VisitedServerOptions options, VisitedServerHost host);
  VisitedServer(const VisitedServer&) = delete;
  VisitedServer& operator=(const VisitedServer&) = delete;

  // Continues from the version and the account of another server, whose clients may come back.
  void continue_from(std::int64_t version, const std::string& account);
  // Serves. Returns true when all clients have finished, and false when is_to_end() returns true. Throws
  // DeviceError if all clients were lost.
  bool serve();
  // Accepts a connection as if it had been made at the port. `from` is its name in reports.
  void receive(FileDescriptor socket, const std::string& from);

  std::int64_t version() const { return version_; }
  std::span<const std::byte> weights() const { return weights_; }
  // Returns the oldest version at which a client with diverging training may have pushed. Returns version()
  // if there is none.
  std::int64_t doubted_since() const { return recent_.oldest().value_or(version_); }
  const ClientTable& table() const { return table_; }
  // Returns the table of clients, with the clients that have left or were lost, as text. After serve() has
  // returned true, no client is listed as left, because a run that continues has its own clients.
  std::string account() const;
  const ServerPlace& place() const { return place_; }

 private:
  struct Guest {
    Line line;
    std::string from;
    // Time when bytes last moved, in seconds; before the proof, the time when the connection was accepted.
    double heard_at;
    std::uint64_t moved = 0;  // number of bytes that had moved by that time
    int number = 0;           // number of the client; 0: it has not joined
    bool is_refused = false;  // true: the client is refused, and may still read the reason
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
  std::size_t most_of_facts_ = 0;  // largest number of bytes of a client's facts
  ServerPlace place_;
  Door door_;
  std::list<Guest> guests_;
  ClientTable table_;
  PushJudge judge_;
  RecentPushes recent_;
  int numbers_ = 0;                // number of clients that have got a number
  std::set<int> left_;             // clients that have left at the end of their work
  std::map<int, double> lost_at_;  // for each lost client, the time when it was lost, in seconds
  std::int64_t version_ = 0;
};

}  // namespace plexaura

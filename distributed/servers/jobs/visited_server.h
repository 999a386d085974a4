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
#include "distributed/servers/jobs/server_file.h"
#include "distributed/servers/push_judge.h"
#include "distributed/servers/recent_pushes.h"
#include "distributed/servers/server_rule.h"

namespace plexaura {

using VisitFacts = std::map<std::string, std::string>;

struct VisitedServerOptions {
  ServerRule rule = {};
  double push_limit = PushJudge::default_limit;  // see PushJudge
  // Ends when so many clients have left, or are lost for longer than the deadline, and none is there.
  int clients = 1;
  ListenAt listen = {};
  double deadline_seconds = 60;  // for which a client may be silent, or be away
  VisitFacts samples = {};       // what a client has to know to read its samples as the others do
  VisitFacts facts = {};         // what a client has to have alike, beside the parameters
};

class VisitedServer;

// What the server asks of its program.
struct VisitedServerHost {
  std::function<bool()> is_to_end;                   // asked several times a second
  std::function<void(const VisitedServer&)> pushed;  // behind each push, before it is answered
  // The pushes of this version and later ones may be of a client whose training diverged: what is kept of the weights from
  // before them, as a name; empty: nothing.
  std::function<std::string(std::int64_t version)> keep_before;
  std::function<void(const std::string& sentence)> say;   // who comes and goes
  std::function<void(const std::string& sentence)> warn;  // who is lost or refused
};

// An asynchronous parameter server whose clients are jobs of their own: they join while it runs, push as those of
// ParameterServer, and leave or are lost, and nobody waits for another. It deals out no data. A client whose push a
// PushJudge refuses is told so, and is lost. Who comes without the key of the file, or sends what no client sends, loses the
// connection, and costs the others neither memory nor descriptors nor time that they would miss.
class VisitedServer {
 public:
  // Listens, and says so in the file. `weights`: all, to begin with. Throws UserError as ServerFile and
  // listen_at() do.
  VisitedServer(const std::filesystem::path& file, LogicalWeights form, std::vector<std::byte> weights,
                VisitedServerOptions options, VisitedServerHost host);
  VisitedServer(const VisitedServer&) = delete;
  VisitedServer& operator=(const VisitedServer&) = delete;

  // Goes on from the version and the account of another one: its clients may come back.
  void go_on_from(std::int64_t version, const std::string& account);
  // Until it is over, or is to end. Whether it is over. Throws DeviceError where all clients were lost.
  bool serve();
  // Takes a connection in as if it had been made at the port. `from`: by which it is named.
  void receive(FileDescriptor socket, const std::string& from);

  std::int64_t version() const { return version_; }
  std::span<const std::byte> weights() const { return weights_; }
  // Pushes of this version and later ones may yet turn out to be of a client whose training diverges.
  std::int64_t doubted_since() const { return recent_.oldest().value_or(version_); }
  const ClientTable& table() const { return table_; }
  // The table, and who has left or was lost: of nobody where serve() has come to its end, for what goes on then has clients of its own.
  std::string account() const;
  const ServerPlace& place() const { return place_; }

 private:
  struct Guest {
    Line line;
    std::string from;
    double heard_at;  // the last time that bytes moved; of one that has not proven the key, when it came
    std::uint64_t moved = 0;  // bytes, until then
    int number = 0;           // 0: has not joined
    bool is_refused = false;  // and may read why
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
  void tell_earlier_pushes(int client, const std::deque<std::int64_t>& versions);
  void refuse(Guest& guest, const std::string& sentence);
  void lose(Guest& guest, const std::string& why);
  void note_loss(Guest& guest, const std::string& why);
  std::size_t joined() const;

  ServerFile file_;
  LogicalWeights form_;
  std::vector<std::byte> weights_;
  VisitedServerOptions options_;
  VisitedServerHost host_;
  std::size_t most_of_facts_ = 0;  // bytes
  ServerPlace place_;
  Door door_;
  std::list<Guest> guests_;
  ClientTable table_;
  PushJudge judge_;
  RecentPushes recent_;
  int numbers_ = 0;                // given to clients
  std::set<int> left_;             // at the end of their work
  std::map<int, double> lost_at_;  // seconds
  std::int64_t version_ = 0;
};

}  // namespace plexaura

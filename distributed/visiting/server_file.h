#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace plexaura {

// Where a server is, and the key without which it takes no letter.
struct ServerPlace {
  std::string host;
  int port = 0;
  std::string key;
};

// The file by which clients find a server, who alone may read it (and root): "HOST PORT KEY". Its server holds a lock on it as
// long as it lives.
class ServerFile {
 public:
  // Throws UserError where the file cannot be written, or another server holds it.
  explicit ServerFile(std::filesystem::path path);
  ServerFile(const ServerFile&) = delete;
  ServerFile& operator=(const ServerFile&) = delete;
  ~ServerFile();  // empties and removes it

  // To be called when the server listens.
  void tell(const ServerPlace& place);

 private:
  std::filesystem::path path_;
  int file_;
};

// What a server has told there; none where it has not yet, or the file is not there.
std::optional<ServerPlace> read_server_file(const std::filesystem::path& path);
// UserError where something else is there than what a server has written, or may be writing.
void check_server_file(const std::filesystem::path& path);

// A new key, of 128 random bits.
std::string make_key();
// A socket that listens at a port of the system's choice, on all networks of this host. DeviceError where there is none.
int listen_anywhere(ServerPlace& place);
// A connection; below 0 where nobody listens, or none comes about within so many seconds.
int connect_to(const ServerPlace& place, double seconds);

}  // namespace plexaura

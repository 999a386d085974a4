#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/file_descriptor.h"

namespace plexaura {

// The address of a server, and the key that it demands of clients.
struct ServerPlace {
  std::string host;
  int port = 0;
  std::string key;
};

// The file by which clients find a server: "HOST PORT KEY". Only the user of the server and root can read or write it. The server
// holds a lock on it as long as it lives.
class ServerFile {
 public:
  // Throws UserError if the file cannot be written, is a link or open to other users, has contents that no
  // server has written, or is held by another server.
  explicit ServerFile(std::filesystem::path path);
  ServerFile(const ServerFile&) = delete;
  ServerFile& operator=(const ServerFile&) = delete;
  ~ServerFile();  // empties and removes it

  // Writes the file. Called when the server listens.
  void tell(const ServerPlace& place);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

// Returns what a server has written; none if it has not written yet, or if there is no file.
std::optional<ServerPlace> read_server_file(const std::filesystem::path& path);
// Throws UserError if the file cannot be read, or holds something that no server writes.
void check_server_file(const std::filesystem::path& path);

// Returns a new key: 256 random bits as 64 hexadecimal digits.
std::string make_key();

}  // namespace plexaura

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
  // Throws UserError if the file cannot be written, if it is a link, if other users may open it, if it has contents that
  // no server has written, and if another server holds it.
  explicit ServerFile(std::filesystem::path path);
  ServerFile(const ServerFile&) = delete;
  ServerFile& operator=(const ServerFile&) = delete;
  ~ServerFile();  // empties and removes the file

  // Writes the file. Called when the server listens.
  void tell(const ServerPlace& place);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

// Returns the place that a server has written into the file. Returns nothing if it has not written it yet, or
// if there is no file.
std::optional<ServerPlace> read_server_file(const std::filesystem::path& path);
// Throws UserError if the file exists and cannot be read, or if no server can have written its contents.
void check_server_file(const std::filesystem::path& path);

// Returns a new key: 256 random bits as 64 hexadecimal digits.
std::string make_key();

}  // namespace plexaura

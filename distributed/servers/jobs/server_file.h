#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/file_descriptor.h"

namespace plexaura {

// Where a server is, and the key without which it takes no letter.
struct ServerPlace {
  std::string host;
  int port = 0;
  std::string key;
};

// The file by which clients find a server: "HOST PORT KEY". Nobody but the user of the server can read or write it (and root).
// Its server holds a lock on it as long as it lives.
class ServerFile {
 public:
  // Throws UserError where the file cannot be written, is a link, or is open to other users, or another server
  // holds it.
  explicit ServerFile(std::filesystem::path path);
  ServerFile(const ServerFile&) = delete;
  ServerFile& operator=(const ServerFile&) = delete;
  ~ServerFile();  // empties and removes it

  // To be called when the server listens.
  void tell(const ServerPlace& place);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

// What a server has told there; none where it has not yet, or the file is not there.
std::optional<ServerPlace> read_server_file(const std::filesystem::path& path);
// UserError where something else is there than what a server has written, or may be writing.
void check_server_file(const std::filesystem::path& path);

// A new key: 256 random bits as 64 hexadecimal digits.
std::string make_key();

}  // namespace plexaura

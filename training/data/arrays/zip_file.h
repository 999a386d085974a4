#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "training/data/arrays/byte_range.h"

namespace plexaura {

// A zip archive with members that are stored or deflated, as numpy.savez() and savez_compressed() write. Also
// reads archives and members above 4 GiB (zip64). Errors are UserErrors that name the file, the member and the
// offset. Thread-safe.
// Source: APPNOTE.TXT - .ZIP File Format Specification, version 6.3.10.
class ZipFile {
 public:
  // Reads the directory of the archive. Throws if it is damaged, or if the archive consists of several files.
  explicit ZipFile(const std::filesystem::path& path);

  // Returns the names of the members, sorted.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return members_.contains(name); }
  // Returns the contents of a member: of a deflated one, in memory; of a stored one, at its place in the file.
  // Reads all of it once to compare its checksum. Throws if there is no such member, if it is damaged,
  // encrypted, or compressed by another method.
  ByteRange open(const std::string& name) const;

 private:
  struct Member {
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::uint32_t checksum = 0;
    std::uint64_t compressed = 0;  // bytes of the compressed contents
    std::uint64_t bytes = 0;
    std::uint64_t header = 0;  // offset of the member's own header in the archive
  };

  void read_directory(std::uint64_t begin, std::uint64_t bytes, std::uint64_t count);
  ByteRange place_of(const std::string& name, const Member& member) const;

  std::shared_ptr<const InputFile> file_;
  std::map<std::string, Member> members_;
};

}  // namespace plexaura

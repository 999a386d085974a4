#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <initializer_list>
#include <string>
#include <vector>
#include <zlib.h>

namespace plexaura::testing {

// Returns a file of numpy with this header and these elements.
inline std::string npy_text(const std::string& descr, const std::string& shape,
                            const std::string& elements = "", const std::string& fortran = "False") {
  std::string header =
      fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran, shape);
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + elements;
}

// Returns numbers as they are in memory.
template <class T>
std::string bytes_of(std::initializer_list<T> numbers) {
  std::string bytes;
  for (const T number : numbers) bytes.append(reinterpret_cast<const char*>(&number), sizeof(T));
  return bytes;
}

template <class T>
std::string npy_of(const std::string& descr, const std::string& shape, std::initializer_list<T> numbers) {
  return npy_text("'" + descr + "'", shape, bytes_of(numbers));
}

inline std::string little_endian_text(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i);
  return text;
}

// Returns bytes as the deflate method stores them.
inline std::string deflated(std::string bytes) {
  std::string out(compressBound(bytes.size()) + 64, '\0');
  z_stream zlib{};
  deflateInit2(&zlib, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  zlib.next_in = reinterpret_cast<Bytef*>(bytes.data());
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

struct ZipMember {
  std::string name;
  std::string bytes;
  bool is_deflated = false;
  bool is_large = false;  // its sizes and its offset are in the extra field of zip64
};

// Returns a zip archive.
inline std::string zip_text(const std::vector<ZipMember>& members) {
  std::string text;
  std::string directory;
  const auto number = little_endian_text;
  for (const ZipMember& member : members) {
    const std::string data = member.is_deflated ? deflated(member.bytes) : member.bytes;
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()), static_cast<uInt>(member.bytes.size()));
    const std::uint64_t none = 0xffffffff;
    const std::string extra = !member.is_large
                                  ? ""
                                  : number(1, 2) + number(24, 2) + number(member.bytes.size(), 8) +
                                        number(data.size(), 8) + number(text.size(), 8);
    const auto small = [&](std::uint64_t value) { return number(member.is_large ? none : value, 4); };
    const std::string common = number(20, 2) + number(0, 2) + number(member.is_deflated ? 8 : 0, 2) +
                               number(0, 4) + number(sum, 4) + small(data.size()) +
                               small(member.bytes.size()) + number(member.name.size(), 2);
    directory += number(0x02014b50, 4) + number(20, 2) + common + number(extra.size(), 2) + number(0, 2) +
                 number(0, 2) + number(0, 2) + number(0, 4) + small(text.size()) + member.name + extra;
    text += number(0x04034b50, 4) + common + number(0, 2) + member.name + data;
  }
  return text + directory + number(0x06054b50, 4) + number(0, 2) + number(0, 2) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(text.size(), 4) + number(0, 2);
}

}  // namespace plexaura::testing

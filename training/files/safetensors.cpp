#include "training/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "training/files/file.h"
#include "training/files/safetensors_header.h"
#include "training/ranks/store_hash.h"

namespace plexaura {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian and is read as it lies");

constexpr std::uint64_t length_bytes = 8;  // bytes of the number that precedes the header and is its length
constexpr std::uint64_t longest_header = 100'000'000;
const std::string checksum_key = "checksum.fnv1a64";

struct OpenedFile {
  InputFile file;
  SafeTensorsTable table;
  std::uint64_t data_start = 0;
};

// True for a file of PyTorch: a zip archive, or a pickle before version 1.6.
bool is_pytorch_file(std::uint64_t first_bytes) {
  constexpr std::uint64_t zip = 0x04034b50;  // the bytes "PK", 3, 4
  constexpr std::uint64_t pickle = 0x80;     // followed by the number of the protocol, from 2 to 5
  const std::uint64_t protocol = first_bytes >> 8 & 0xff;
  return (first_bytes & 0xffffffff) == zip ||
         ((first_bytes & 0xff) == pickle && protocol >= 2 && protocol <= 5);
}

std::uint64_t read_header_length(const InputFile& file) {
  if (file.bytes() == 0)
    throw UserError(fmt::format("'{}' is empty; fetch or copy it again", file.path().string()));
  if (file.bytes() < length_bytes)
    throw UserError(
        fmt::format("'{}' has {} bytes, too few for a safetensors file", file.path().string(), file.bytes()));
  std::array<std::byte, length_bytes> raw{};
  file.read(0, raw);
  const auto length = std::bit_cast<std::uint64_t>(raw);
  if (length > longest_header && is_pytorch_file(length))
    throw UserError(fmt::format(
        "'{0}' looks like a file of PyTorch's (.pth), not of safetensors; convert it in Python with "
        "safetensors.torch.save_file(torch.load('{0}'), '{0}.safetensors')",
        file.path().string()));
  if (raw[0] == std::byte{'<'} && length > longest_header)
    throw UserError(fmt::format(
        "'{}' looks like a page of the web (HTML or XML) and not like a safetensors file; fetch it again",
        file.path().string()));
  if (length > longest_header)
    throw UserError(
        fmt::format("'{}' begins with something other than a safetensors header: it is of another format or "
                    "damaged; convert it to safetensors, or fetch it again",
                    file.path().string()));
  if (length > file.bytes() - length_bytes)
    throw UserError(
        fmt::format("'{}': a header of {} bytes does not fit in a file of {}; the file is damaged or not a "
                    "safetensors file",
                    file.path().string(), length, file.bytes()));
  return length;
}

OpenedFile open_checked(const std::filesystem::path& path) {
  InputFile file(path);
  std::string text(static_cast<std::size_t>(read_header_length(file)), '\0');
  file.read(length_bytes, std::as_writable_bytes(std::span(text)));
  const std::uint64_t data_start = length_bytes + text.size();
  SafeTensorsTable table = parse_safetensors_header(text, file.bytes() - data_start, path);
  return {std::move(file), std::move(table), data_start};
}

std::string checksum_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

// Throws if the file has a checksum and it is wrong. Files of other programs have none. A program that
// changes tensors but keeps the metadata makes the checksum wrong.
void check_sum(const SafeTensorsTable& table, std::uint64_t hash, const std::filesystem::path& path) {
  const auto written = table.metadata.find(checksum_key);
  if (written != table.metadata.end() && written->second != checksum_text(hash))
    throw UserError(
        fmt::format("'{}': its tensors do not give the checksum in its metadata; the file is damaged: take "
                    "another copy, or, if tensors were changed on purpose, remove '{}' from the metadata",
                    path.string(), checksum_key));
}

// Throws for a byte other than 0 and 1, because reading it as a bool would be undefined behaviour.
void check_booleans(const Tensor& tensor, const std::string& name, const std::filesystem::path& path) {
  const std::span bytes(tensor.data(), tensor.dtype() == DType::boolean ? tensor.bytes() : 0);
  if (std::ranges::any_of(bytes, [](std::byte byte) { return byte > std::byte{1}; }))
    throw UserError(
        fmt::format("'{}': tensor '{}' is BOOL and contains a byte other than 0 and 1", path.string(), name));
}

// Returns the indices of the tensors by decreasing element size, so that each tensor starts at a multiple of
// its element size.
std::vector<std::size_t> order_of_data(const SafeTensors& contents) {
  std::vector<std::size_t> order(contents.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t index) {
    return size_of(contents.tensors[index].second.dtype());
  });
  return order;
}

SafeTensorsTable table_of(const SafeTensors& contents, const std::vector<std::size_t>& order) {
  SafeTensorsTable table;
  for (const auto& [name, tensor] : contents.tensors) table.entries.push_back({name, tensor.type(), 0});
  std::uint64_t end = 0;
  for (const std::size_t index : order) {
    table.entries[index].begin = end;
    end += contents.tensors[index].second.bytes();
  }
  table.metadata = contents.metadata;
  table.metadata[checksum_key] = checksum_of(contents);
  return table;
}

}  // namespace

SafeTensors read_safetensors(const std::filesystem::path& path) {
  return read_safetensors(path, [](const std::string&) { return true; });
}

SafeTensors read_safetensors(const std::filesystem::path& path,
                             const std::function<bool(const std::string&)>& wanted, bool verifies) {
  OpenedFile opened = open_checked(path);
  SafeTensors contents;
  std::uint64_t hash = fnv_start;
  for (SafeTensorsTable::Entry& entry : opened.table.entries) {
    const bool is_wanted = wanted(entry.name);
    if (!is_wanted && !verifies) continue;
    Tensor tensor(entry.type);
    opened.file.read(opened.data_start + entry.begin, {tensor.data(), tensor.bytes()});
    if (verifies) hash = hash_of(tensor, hash);
    check_booleans(tensor, entry.name, path);
    if (is_wanted) contents.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  if (verifies) check_sum(opened.table, hash, path);
  contents.metadata = std::move(opened.table.metadata);
  contents.metadata.erase(checksum_key);
  return contents;
}

SafeTensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  OpenedFile opened = open_checked(path);
  SafeTensorsHeader header;
  for (SafeTensorsTable::Entry& entry : opened.table.entries)
    header.types.emplace_back(std::move(entry.name), std::move(entry.type));
  header.metadata = std::move(opened.table.metadata);
  header.metadata.erase(checksum_key);
  return header;
}

std::string checksum_of(const SafeTensors& contents) {
  std::uint64_t hash = fnv_start;
  for (const auto& [name, tensor] : contents.tensors) hash = hash_of(tensor, hash);
  return checksum_text(hash);
}

std::string write_safetensors(const std::filesystem::path& path, const SafeTensors& contents) {
  const std::vector<std::size_t> order = order_of_data(contents);
  SafeTensorsTable table = table_of(contents, order);
  const std::string header = format_safetensors_header(table, path);
  AtomicFile file(path);
  const auto length = std::bit_cast<std::array<std::byte, length_bytes>>(std::uint64_t{header.size()});
  file.write(length);
  file.write(header);
  for (const std::size_t index : order) {
    const Tensor& tensor = contents.tensors[index].second;
    file.write(std::span<const std::byte>(tensor.data(), tensor.bytes()));
  }
  file.commit();
  return std::move(table.metadata[checksum_key]);
}

}  // namespace plexaura

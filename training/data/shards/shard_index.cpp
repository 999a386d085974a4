#include "training/data/shards/shard_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <zlib.h>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/base/utf8.h"
#include "training/data/arrays/little_endian.h"

namespace plexaura {

namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "samples are stored as they are in memory");

constexpr std::string_view index_magic = "PLXINDEX";
constexpr std::string_view shard_magic = "PLXSHARD";
constexpr std::uint32_t version = 1;
constexpr std::size_t head_bytes = 16;    // magic, version, bytes of the header
constexpr std::size_t record_bytes = 24;  // bytes of a record in the index
constexpr std::size_t checksum_bytes = 4;
constexpr std::int64_t most_elements = std::int64_t{1} << 30;  // largest number of elements of a sample

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw UserError(
      fmt::format("{}: {}; pack the data again with tools/pack, or fetch the file again", name, what));
}

template <class T>
void append_number(std::string& text, T number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof(T));
}

std::string hexadecimal(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::string header_text(const ShardIndex& index) {
  const ShardContents& contents = index.contents;
  Json shards = Json::array();
  for (const ShardFile& shard : index.shards)
    shards.push_back({{"bytes", shard.bytes}, {"identity", hexadecimal(shard.identity)}});
  Json header{{"records", contents.kind == RecordKind::image_file ? "image_file" : "sample"},
              {"classes", contents.classes},
              {"columns", contents.columns},
              {"targets", contents.targets},
              {"shards", shards},
              {"samples", index.records.size()}};
  if (!contents.categories.empty()) header["categories"] = contents.categories;
  if (contents.kind == RecordKind::sample) {
    header["dtype"] = name_of(contents.sample.dtype);
    header["shape"] = contents.sample.shape.extents();
  }
  return header.dump();
}

// Reads the header. Any exception of the JSON library means that the header is not one of ours.
class HeaderReader {
 public:
  HeaderReader(std::string name, const std::string& text) : name_(std::move(name)) {
    try {
      header_ = Json::parse(text);
    } catch (const Json::exception&) {
      fail(name_, "its header is not JSON");
    }
    if (!header_.is_object()) fail(name_, "its header is not a JSON object");
  }

  ShardContents contents() const {
    ShardContents found;
    const std::string kind = get<std::string>("records");
    if (kind != "image_file" && kind != "sample")
      fail(name_, "its records are neither image_file nor sample");
    found.kind = kind == "sample" ? RecordKind::sample : RecordKind::image_file;
    if (found.kind == RecordKind::sample) found.sample = sample_type();
    found.classes = texts("classes");
    found.columns = texts("columns");
    found.targets = texts("targets");
    if (header_.contains("categories")) found.categories = texts("categories");
    if (found.classes.empty()) fail(name_, "it has no class");
    const auto numbers = static_cast<std::int64_t>(found.columns.size() + found.targets.size());
    const bool are_rows = found.sample.dtype == DType::float32 && found.sample.shape == Shape{numbers};
    if (numbers > 0 && (found.kind != RecordKind::sample || !are_rows))
      fail(name_, fmt::format("its samples are no rows of {} numbers", numbers));
    return found;
  }

  std::vector<ShardFile> shards() const {
    std::vector<ShardFile> found;
    if (!header_.contains("shards") || !header_["shards"].is_array())
      fail(name_, "it does not list its shards");
    for (const Json& shard : header_["shards"]) {
      const auto identity = shard.is_object() && shard.contains("identity") && shard["identity"].is_string()
                                ? shard["identity"].get<std::string>()
                                : "";
      const bool has_bytes =
          shard.is_object() && shard.contains("bytes") && shard["bytes"].is_number_unsigned();
      if (!has_bytes || identity.size() != 16 ||
          identity.find_first_not_of("0123456789abcdef") != std::string::npos)
        fail(name_, fmt::format("its shard {} has no bytes and identity", found.size()));
      found.push_back({shard["bytes"].get<std::uint64_t>(), std::stoull(identity, nullptr, 16)});
    }
    return found;
  }

  std::uint64_t samples() const { return get<std::uint64_t>("samples"); }

 private:
  template <class T>
  T get(const char* key) const {
    try {
      return header_.at(key).get<T>();
    } catch (const Json::exception&) {
      fail(name_, fmt::format("its header has no usable '{}'", key));
    }
  }

  std::vector<std::string> texts(const char* key) const {
    auto found = get<std::vector<std::string>>(key);
    for (const std::string& text : found)
      if (first_not_utf8(text) < text.size()) fail(name_, fmt::format("its '{}' are not UTF-8", key));
    return found;
  }

  TensorType sample_type() const {
    const auto dtype = get<std::string>("dtype");
    if (dtype != "uint8" && dtype != "float32") fail(name_, "its samples are neither uint8 nor float32");
    const auto extents = get<std::vector<std::int64_t>>("shape");
    constexpr std::size_t most_axes = 8;
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) {
      if (extent < 1 || extent > most_elements / elements)
        fail(name_, "its samples have an impossible shape");
      elements *= extent;
    }
    if (extents.empty() || extents.size() > most_axes) fail(name_, "its samples have an impossible shape");
    return {dtype == "uint8" ? DType::uint8 : DType::float32, Shape(extents)};
  }

  std::string name_;
  Json header_;
};

void check_record(const std::string& name, const ShardIndex& index, std::size_t number) {
  const ShardRecord& record = index.records[number];
  const auto refuse = [&](const char* what) { fail(name, fmt::format("its record {} {}", number, what)); };
  if (record.shard >= index.shards.size()) refuse("is in a shard that is not listed");
  const std::uint64_t shard_bytes = index.shards[record.shard].bytes;
  if (record.offset > shard_bytes || record.bytes > shard_bytes - record.offset)
    refuse("is beyond its shard");
  if (record.label >= index.contents.classes.size()) refuse("has a label without a class");
  if (index.contents.kind == RecordKind::sample &&
      record.bytes != static_cast<std::uint64_t>(index.contents.sample.bytes()))
    refuse("has another size than a sample");
}

}  // namespace

std::string write_shard_index(const ShardIndex& index) {
  std::string header = header_text(index);
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that numbers are aligned
  std::string text(index_magic);
  append_number(text, version);
  append_number(text, static_cast<std::uint32_t>(header.size()));
  text += header;
  for (const ShardRecord& record : index.records) {
    append_number(text, record.offset);
    append_number(text, record.bytes);
    append_number(text, record.checksum);
    append_number(text, record.label);
    append_number(text, record.shard);
  }
  append_number(text, record_checksum(std::as_bytes(std::span(text))));
  return text;
}

ShardIndex read_shard_index(const ByteRange& file) {
  const std::string& name = file.name();
  if (file.size() < head_bytes + checksum_bytes) fail(name, fmt::format("has only {} bytes", file.size()));
  std::vector<std::byte> all(file.size());
  file.read(0, all);
  const std::span<const std::byte> bytes(all);
  const std::string_view text(reinterpret_cast<const char*>(all.data()), all.size());
  if (!text.starts_with(index_magic)) fail(name, "does not begin as an index of packed shards");
  if (const auto found = little_endian<std::uint32_t>(bytes, 8); found != version)
    throw UserError(
        fmt::format("{}: has version {} of the format, and this program reads version {}; pack the data "
                    "with tools/pack of this version",
                    name, found, version));
  const std::size_t end = all.size() - checksum_bytes;
  if (record_checksum(bytes.first(end)) != little_endian<std::uint32_t>(bytes, end))
    fail(name, "its bytes do not have its checksum");
  const std::size_t header_bytes = little_endian<std::uint32_t>(bytes, 12);
  if (header_bytes > end - head_bytes) fail(name, "ends within its header");
  const HeaderReader header(name, std::string(text.substr(head_bytes, header_bytes)));
  ShardIndex index{.contents = header.contents(), .shards = header.shards(), .records = {}};
  const std::size_t first = head_bytes + header_bytes;
  const std::uint64_t count = header.samples();
  if (count == 0 || (end - first) % record_bytes != 0 || (end - first) / record_bytes != count)
    fail(name, fmt::format("has {} bytes of records, but its header counts {} samples", end - first, count));
  index.records.reserve(count);
  for (std::size_t at = first; at < end; at += record_bytes) {
    index.records.push_back({.offset = little_endian<std::uint64_t>(bytes, at),
                             .bytes = little_endian<std::uint32_t>(bytes, at + 8),
                             .checksum = little_endian<std::uint32_t>(bytes, at + 12),
                             .label = little_endian<std::uint32_t>(bytes, at + 16),
                             .shard = little_endian<std::uint32_t>(bytes, at + 20)});
    check_record(name, index, index.records.size() - 1);
  }
  return index;
}

std::string write_shard_end(std::uint64_t identity) {
  std::string text(shard_magic);
  append_number(text, identity);
  append_number(text, version);
  append_number(text, record_checksum(std::as_bytes(std::span(text))));
  return text;
}

void check_shard_end(const ByteRange& file, const ShardFile& expected) {
  if (file.size() < shard_end_bytes || file.size() - shard_end_bytes != expected.bytes)
    fail(file.name(), fmt::format("has {} bytes, but the index expects {}", file.size(),
                                  expected.bytes + shard_end_bytes));
  std::string end(shard_end_bytes, '\0');
  file.read(expected.bytes, std::as_writable_bytes(std::span(end)));
  if (end == write_shard_end(expected.identity)) return;
  if (!end.starts_with(shard_magic)) fail(file.name(), "does not end as a shard");
  fail(file.name(), "belongs to another index than the one beside it");
}

std::uint64_t shard_identity(std::uint64_t identity, const ShardRecord& record) {
  const std::array facts{record.bytes, record.checksum, record.label};
  return fnv(std::as_bytes(std::span(facts)), identity);
}

std::uint32_t record_checksum(std::span<const std::byte> bytes) {
  uLong sum = crc32(0, nullptr, 0);
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), most)))
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uInt>(std::min(bytes.size(), most)));
  return static_cast<std::uint32_t>(sum);
}

std::string index_name(const std::string& part) { return part + ".index"; }

std::string shard_name(const std::string& part, std::size_t number) {
  return fmt::format("{}-{:05}.shard", part, number);
}

}  // namespace plexaura

#include "training/files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace plexaura {
namespace {

using Json = nlohmann::json;

constexpr std::string_view metadata_key = "__metadata__";
constexpr int deepest_nesting = 3;  // the header, an entry, and a list in the entry

constexpr std::array<std::pair<DType, std::string_view>, 8> dtype_names{{{DType::float64, "F64"},
                                                                         {DType::float32, "F32"},
                                                                         {DType::bfloat16, "BF16"},
                                                                         {DType::float16, "F16"},
                                                                         {DType::int64, "I64"},
                                                                         {DType::int32, "I32"},
                                                                         {DType::uint8, "U8"},
                                                                         {DType::boolean, "BOOL"}}};

std::string_view name_in_file(DType dtype) {
  return std::ranges::find(dtype_names, dtype, &std::pair<DType, std::string_view>::first)->second;
}

// The largest number of letters of a user's file that an error shows.
constexpr std::size_t longest_shown = 200;

std::string shown_json(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, longest_shown);
}

// The place that errors name: the file and, once it is known, the tensor.
class HeaderPlace {
 public:
  explicit HeaderPlace(const std::filesystem::path& path) : text_(fmt::format("'{}'", path.string())) {}
  HeaderPlace tensor(const std::string& name) const {
    HeaderPlace place = *this;
    place.text_ += ": tensor " + shown_json(name);
    return place;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError(fmt::format("{}: {}", text_, what));
  }
  [[noreturn]] void fail(std::string_view what) const {
    refuse(fmt::format("{}; the file is damaged or not a safetensors file", what));
  }

 private:
  std::string text_;
};

// Checks during parsing that nothing is nested deeper than the format allows, and that no object contains a
// key twice. Stores the order of the outermost keys, which the parsed object loses.
class KeyWatch {
 public:
  explicit KeyWatch(const HeaderPlace& place) : place_(place) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > deepest_nesting) place_.fail("the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) add(parsed.get_ref<const std::string&>());
    return true;
  }
  const std::vector<std::string>& outermost() const { return outermost_; }

 private:
  void add(const std::string& key) {
    if (!keys_.back().insert(key).second) place_.tensor(key).fail("the name appears twice");
    if (keys_.size() == 1) outermost_.push_back(key);
  }

  const HeaderPlace& place_;
  std::vector<std::set<std::string>> keys_;  // keys of the objects that are not closed yet
  std::vector<std::string> outermost_;
};

Json parse_json(std::string_view text, KeyWatch& watch, const HeaderPlace& place) {
  if (!text.starts_with('{')) place.fail("the header does not begin with '{'");
  // The parser would treat a zero byte as the end of the text.
  if (text.find('\0') != std::string_view::npos) place.fail("the header contains a zero byte");
  try {
    return Json::parse(text.begin(), text.end(), std::ref(watch));
  } catch (const Json::exception& error) {
    place.fail(fmt::format("the header is not valid JSON ({})",
                           std::string_view(error.what()).substr(0, longest_shown)));
  }
}

std::int64_t read_count(const Json& value, std::string_view what, const HeaderPlace& place) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest)
    place.fail(fmt::format("{} is {}, not a whole number of at most 63 bits", what, shown_json(value)));
  return value.get<std::int64_t>();
}

DType read_dtype(const Json& value, const HeaderPlace& place) {
  if (!value.is_string()) place.fail(fmt::format("the dtype is {}, not a text", shown_json(value)));
  const auto* found = std::ranges::find(dtype_names, value.get_ref<const std::string&>(),
                                        &std::pair<DType, std::string_view>::second);
  if (found == dtype_names.end())
    place.refuse(
        fmt::format("the dtype is {}, not one of F64, F32, BF16, F16, I64, I32, U8, BOOL; convert the tensor "
                    "to one of these",
                    shown_json(value)));
  return found->first;
}

TensorType read_type(const Json& entry, const HeaderPlace& place) {
  const Json& extents = entry["shape"];
  if (!extents.is_array()) place.fail("the shape is not a list");
  TensorType type{read_dtype(entry["dtype"], place), Shape{}};
  std::vector<std::int64_t> shape;
  for (const Json& extent : extents) shape.push_back(read_count(extent, "an extent", place));
  try {
    type.shape = Shape(std::move(shape));
  } catch (const UserError&) {
    place.fail("the shape has more bytes than a 64-bit number can count");
  }
  return type;
}

SafeTensorsTable::Entry read_entry(const std::string& name, const Json& entry, std::uint64_t data_bytes,
                                   const HeaderPlace& place) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    place.fail("the entry does not consist of dtype, shape and data_offsets");
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) place.fail("data_offsets is not a pair");
  const std::int64_t begin = read_count(offsets[0], "an offset", place);
  const std::int64_t end = read_count(offsets[1], "an offset", place);
  if (begin > end || static_cast<std::uint64_t>(end) > data_bytes)
    place.fail(fmt::format("the bytes {} to {} do not lie in the data of {} bytes", begin, end, data_bytes));
  TensorType type = read_type(entry, place);
  if (type.bytes() != end - begin)
    place.fail(fmt::format("{} takes {} bytes and was given {}", to_string(type), type.bytes(), end - begin));
  return {name, std::move(type), static_cast<std::uint64_t>(begin)};
}

std::map<std::string, std::string> read_metadata(const Json& value, const HeaderPlace& place) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) place.fail("__metadata__ is not a map of texts");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) place.fail("__metadata__ is not a map of texts");
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

void check_cover(const SafeTensorsTable& table, std::uint64_t data_bytes, const HeaderPlace& place) {
  std::vector<const SafeTensorsTable::Entry*> by_place;
  for (const SafeTensorsTable::Entry& entry : table.entries) by_place.push_back(&entry);
  std::ranges::sort(by_place, {},
                    [](const auto* entry) { return std::pair(entry->begin, entry->type.bytes()); });
  std::uint64_t covered = 0;
  for (const SafeTensorsTable::Entry* entry : by_place) {
    if (entry->begin != covered)
      place.tensor(entry->name)
          .fail(fmt::format("its data begin at byte {}, but byte {} comes next", entry->begin, covered));
    covered += static_cast<std::uint64_t>(entry->type.bytes());
  }
  if (covered != data_bytes)
    place.fail(
        fmt::format("{} bytes of data follow the header and its tensors take {}", data_bytes, covered));
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson format_entry(const SafeTensorsTable::Entry& entry) {
  OrderedJson value = OrderedJson::object();
  value["dtype"] = name_in_file(entry.type.dtype);
  value["shape"] = entry.type.shape.extents();
  value["data_offsets"] = {entry.begin, entry.begin + static_cast<std::uint64_t>(entry.type.bytes())};
  return value;
}

}  // namespace

SafeTensorsTable parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                          const std::filesystem::path& path) {
  const HeaderPlace place(path);
  SafeTensorsTable table;
  KeyWatch watch(place);
  const Json header = parse_json(text, watch, place);
  for (const std::string& name : watch.outermost()) {
    if (name.find('\0') != std::string::npos) place.tensor(name).fail("the name contains the character 0");
    const Json& value = header[name];
    if (name == metadata_key)
      table.metadata = read_metadata(value, place);
    else
      table.entries.push_back(read_entry(name, value, data_bytes, place.tensor(name)));
  }
  check_cover(table, data_bytes, place);
  return table;
}

std::string format_safetensors_header(const SafeTensorsTable& table, const std::filesystem::path& path) {
  // Appends to the list of members, because each insertion into an ordered object searches all of it.
  std::set<std::string_view> names{metadata_key};
  OrderedJson::object_t members;
  if (!table.metadata.empty()) members.emplace_back(std::string(metadata_key), OrderedJson(table.metadata));
  for (const SafeTensorsTable::Entry& entry : table.entries) {
    if (!names.insert(entry.name).second)
      throw UserError(fmt::format("cannot write '{}': the tensor name '{}' is {}", path.string(), entry.name,
                                  entry.name == metadata_key ? "reserved by the format" : "given twice"));
    members.emplace_back(entry.name, format_entry(entry));
  }
  try {
    std::string text = OrderedJson(std::move(members)).dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const OrderedJson::type_error&) {
    throw UserError(fmt::format("cannot write '{}': a tensor name or a text of its metadata is not UTF-8",
                                path.string()));
  }
}

}  // namespace plexaura

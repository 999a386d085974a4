#include "core/params/placement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr std::int64_t granule_bytes = 64;  // the size of a cache line

// Returns the smallest number of elements that is at least `count` and fills whole granules in every arena.
std::int64_t rounded(std::int64_t count, const ArenaTypes& types) {
  const std::size_t least = std::min({size_of(types.values), size_of(types.gradients), size_of(types.states),
                                      size_of(types.shadow.value_or(types.values))});
  const std::int64_t elements = granule_bytes / static_cast<std::int64_t>(least);
  return (count + elements - 1) / elements * elements;
}

DType parse_dtype(std::string_view name) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    if (name_of(dtype) == name) return dtype;
  throw InternalError(fmt::format("a placement names the dtype '{}'", name));
}

ArenaTypes parse_types(const std::string& text) {
  std::istringstream in(text);
  std::vector<DType> types;
  for (std::string name; std::getline(in, name, '/');) types.push_back(parse_dtype(name));
  if (types.size() == 1) return ArenaTypes::all(types[0]);
  if (types.size() != 3 && types.size() != 4)
    throw InternalError(fmt::format("a placement names the dtypes '{}'", text));
  ArenaTypes parsed{types[0], types[1], types[2]};
  if (types.size() == 4) parsed.shadow = types[3];
  return parsed;
}

InternalError damaged() { return InternalError("a placement's text is damaged"); }

std::vector<std::int64_t> read_list(std::istream& in) {
  std::size_t size = 0;
  in >> size;
  if (!in || size > 64) throw damaged();
  std::vector<std::int64_t> numbers(size);
  for (std::int64_t& number : numbers) in >> number;
  return numbers;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  return fmt::format("{} {}", numbers.size(), fmt::join(numbers, " "));
}

}  // namespace

void Placement::append(std::string name, TensorType type, ParameterRole role, Layout layout) {
  if (type.dtype != types.values)
    throw UserError(
        fmt::format("the parameter '{}' is {} in a store of {}; all parameters of a model have one dtype",
                    name, name_of(type.dtype), name_of(types.values)));
  if (!entries.empty() && entries.back().role > role)
    throw InternalError("a placement holds trainables, then buffers, then frozen parameters");
  const std::int64_t offset = entries.empty() ? 0 : entries.back().offset + entries.back().count;
  const std::int64_t count = rounded(layout.elements(type.shape), types);
  entries.push_back({std::move(name), std::move(type), role, std::move(layout), offset, count});
}

const Placement::Entry* Placement::find(std::string_view name) const {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

std::int64_t Placement::count(ParameterRole role) const {
  std::int64_t total = 0;
  for (const Entry& entry : entries)
    if (entry.role == role) total += entry.count;
  return total;
}

std::int64_t Placement::value_count() const {
  return entries.empty() ? 0 : entries.back().offset + entries.back().count;
}

std::int64_t Placement::tail_offset() const {
  return count(ParameterRole::trainable) + count(ParameterRole::buffer);
}

std::int64_t Placement::gradient_count() const { return tail_offset() + tail_count; }

std::int64_t Placement::bytes_before(ArenaKind arena, std::int64_t element) const {
  const auto bytes = [&](std::int64_t elements, ParameterRole role) {
    return elements * static_cast<std::int64_t>(size_of(dtype(arena, role)));
  };
  const std::int64_t trainables = std::min(element, count(ParameterRole::trainable));
  return bytes(trainables, ParameterRole::trainable) + bytes(element - trainables, ParameterRole::buffer);
}

std::size_t Placement::bytes(ArenaKind arena) const {
  std::int64_t elements = value_count();
  if (arena == ArenaKind::gradient || arena == ArenaKind::addend) elements = gradient_count();
  if (arena == ArenaKind::state) elements = count(ParameterRole::trainable);
  if (arena == ArenaKind::scaling) elements = scaling_count;
  return static_cast<std::size_t>(bytes_before(arena, elements));
}

DType Placement::dtype(ArenaKind arena, ParameterRole role) const {
  switch (arena) {
    case ArenaKind::value:
      return types.values;
    case ArenaKind::gradient:
    case ArenaKind::addend:
      return role == ParameterRole::trainable ? types.gradients : types.values;
    case ArenaKind::state:
      return types.states;
    case ArenaKind::scaling:
      return DType::float32;
    case ArenaKind::shadow:
      if (types.shadow) return *types.shadow;
  }
  throw InternalError("the placement has no shadow of the values");
}

std::string to_text(const ArenaTypes& types) {
  if (types == ArenaTypes::all(types.values)) return std::string(name_of(types.values));
  std::string text =
      fmt::format("{}/{}/{}", name_of(types.values), name_of(types.gradients), name_of(types.states));
  if (types.shadow) text += fmt::format("/{}", name_of(*types.shadow));
  return text;
}

std::string to_text(const Placement& placement) {
  std::string text = fmt::format("{} {}\n", to_text(placement.types), placement.entries.size());
  for (const Placement::Entry& entry : placement.entries) {
    std::vector<std::int64_t> blocks;
    for (const Layout::Block& block : entry.layout.blocks())
      blocks.insert(blocks.end(), {block.axis, block.size});
    text += fmt::format("{} {} {} {} {}\n", entry.name, static_cast<int>(entry.role),
                        list_text(entry.type.shape.extents()), list_text(entry.layout.order()),
                        list_text(blocks));
  }
  return text;
}

Placement parse_placement(std::string_view text) {
  std::istringstream in{std::string(text)};
  Placement placement;
  std::string word;
  std::size_t entries = 0;
  in >> word >> entries;
  placement.types = parse_types(word);
  for (; entries > 0; --entries) {
    int role = -1;
    in >> word >> role;
    std::vector<std::int64_t> extents = read_list(in);
    std::vector<std::int64_t> order = read_list(in);
    const std::vector<std::int64_t> numbers = read_list(in);
    const bool sound = in && role >= 0 && role <= static_cast<int>(ParameterRole::frozen) &&
                       order.size() == extents.size() &&
                       std::ranges::all_of(extents, [](std::int64_t extent) { return extent >= 0; });
    if (!sound) throw damaged();
    Shape shape(std::move(extents));
    std::vector<Layout::Block> blocks;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
      if (numbers[i] < 0 || numbers[i] >= shape.rank() || numbers[i + 1] < 1) throw damaged();
      blocks.push_back({numbers[i], numbers[i + 1]});
    }
    placement.append(word, {placement.types.values, std::move(shape)}, static_cast<ParameterRole>(role),
                     Layout(std::move(order), std::move(blocks)));
  }
  return placement;
}

std::vector<Bucket> make_buckets(const Placement& placement, std::int64_t bytes) {
  const DType dtype = placement.types.gradients;
  const std::int64_t least = std::max<std::int64_t>(bytes / static_cast<std::int64_t>(size_of(dtype)), 1);
  std::vector<Bucket> buckets;
  Bucket open{0, 0, dtype};
  for (const Placement::Entry& entry : placement.entries) {
    if (entry.role != ParameterRole::trainable) break;
    open.count += entry.count;
    if (open.count >= least) {
      buckets.push_back(open);
      open = {entry.offset + entry.count, 0, dtype};
    }
  }
  if (open.count > 0) buckets.push_back(open);
  const std::int64_t trainables = placement.count(ParameterRole::trainable);
  buckets.push_back({trainables, placement.gradient_count() - trainables, placement.types.values});
  return buckets;
}

}  // namespace plexaura

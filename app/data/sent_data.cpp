#include "app/data/sent_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "distributed/wire/texts.h"
#include "training/data/remote_samples.h"

namespace plexaura {

namespace {

constexpr int reader = 0;  // the rank that has the data

template <class T>
std::string bytes_as_text(const std::vector<T>& numbers) {
  return fmt::format("{}", fmt::join(numbers, " "));
}

template <class T>
std::vector<T> numbers_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<T>(stream), {}};
}

// Each field has a name, a dtype and a shape.
std::string to_text(const std::vector<Field>& fields) {
  std::vector<std::string> parts;
  for (const auto& [name, type] : fields)
    parts.insert(parts.end(),
                 {name, std::to_string(static_cast<int>(type.dtype)), bytes_as_text(type.shape.extents())});
  return pack(parts);
}

std::vector<Field> fields_in(const std::string& text) {
  const std::vector<std::string> parts = unpack(text);
  std::vector<Field> fields;
  for (std::size_t i = 0; i + 2 < parts.size(); i += 3)
    fields.push_back(
        {parts[i],
         {static_cast<DType>(std::stoi(parts[i + 1])), Shape(numbers_in<std::int64_t>(parts[i + 2]))}});
  return fields;
}

std::string to_text(const RunData& data) {
  return pack({std::to_string(data.train->size()), std::to_string(data.validation->size()),
               to_text(data.train->fields()), pack_facts(to_metadata(data.trained)),
               bytes_as_text(data.pixels.mean), bytes_as_text(data.pixels.stddev),
               std::to_string(data.origin), pack_facts(data.keys),
               data.older_origin ? std::to_string(*data.older_origin) : ""});
}

RunData parse(const std::string& text) {
  const std::vector<std::string> parts = unpack(text);
  const std::vector<Field> fields = fields_in(parts.at(2));
  RunData data;
  data.train = std::make_shared<RemoteSamples>(std::stoll(parts.at(0)), fields);
  data.validation = std::make_shared<RemoteSamples>(std::stoll(parts.at(1)), fields);
  data.trained = trained_data_in(unpack_facts(parts.at(3)), "the data of rank 0").value_or(TrainedData{});
  data.pixels = {numbers_in<double>(parts.at(4)), numbers_in<double>(parts.at(5))};
  data.origin = std::stoull(parts.at(6));
  data.keys = unpack_facts(parts.at(7));
  if (!parts.at(8).empty()) data.older_origin = std::stoull(parts.at(8));
  return data;
}

}  // namespace

bool sends_data(const std::string& strategy) { return strategy == "scatter-gather"; }

RunData share_data(Collective& ranks, RunData mine) {
  const bool reads = ranks.rank() == reader;
  const auto texts = ranks.gather_all(reads ? to_text(mine) : "", "the data of rank 0");
  return reads ? std::move(mine) : parse(texts[reader]);
}

}  // namespace plexaura

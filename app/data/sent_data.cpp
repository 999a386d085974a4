#include "app/data/sent_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "distributed/wire/texts.h"
#include "training/data/remote_dataset.h"

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

std::string to_text(const RunData& data) {
  const Shape sample = data.train->sample_shape();
  return pack({std::to_string(data.train->size()), std::to_string(data.validation->size()),
               std::to_string(static_cast<int>(data.train->sample_dtype())),
               bytes_as_text(std::vector<std::int64_t>(sample.begin(), sample.end())),
               pack(data.train->class_names()), bytes_as_text(data.pixels.mean),
               bytes_as_text(data.pixels.stddev), std::to_string(data.origin), pack_facts(data.keys),
               data.older_origin ? std::to_string(*data.older_origin) : ""});
}

RunData parse(const std::string& text) {
  const std::vector<std::string> parts = unpack(text);
  const TensorType sample{static_cast<DType>(std::stoi(parts.at(2))),
                          Shape(numbers_in<std::int64_t>(parts.at(3)))};
  const std::vector<std::string> classes = unpack(parts.at(4));
  RunData data;
  data.train = std::make_shared<RemoteDataset>(std::stoll(parts.at(0)), sample, classes);
  data.validation = std::make_shared<RemoteDataset>(std::stoll(parts.at(1)), sample, classes);
  data.pixels = {numbers_in<double>(parts.at(5)), numbers_in<double>(parts.at(6))};
  data.origin = std::stoull(parts.at(7));
  data.keys = unpack_facts(parts.at(8));
  if (!parts.at(9).empty()) data.older_origin = std::stoull(parts.at(9));
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

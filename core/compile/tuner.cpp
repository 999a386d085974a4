#include "core/compile/tuner.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "core/compile/measure.h"
#include "core/device/region_text.h"
#include "core/fnv.h"

namespace plexaura {

namespace {

constexpr std::string_view title = "plexaura kernel times 1";

// Takes the first line off the text; without its end, nothing.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

template <class T>
bool take_number(std::string_view& line, T& number, int base) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, base);
  if (error != std::errc() || end == line.data()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return true;
}

std::uint64_t key_of(const Backend& backend, const RegionQuery& query, std::span<const Candidate> candidates,
                     bool accumulate) {
  const BackendInfo& info = backend.info();
  std::uint64_t key = fnv(fmt::format("{}\n{}\n{}\n", info.name, info.description, info.kind));
  key = fnv(query.graph.mode() == Mode::train ? "train\n" : "inference\n", key);
  for (const Candidate& candidate : candidates)
    key = fnv(fmt::format("{}\n{}\n", candidate.implementation, text_of(query, candidate, accumulate)), key);
  return key;
}

}  // namespace

std::vector<double> Tuner::seconds(Backend& backend, const RegionQuery& query,
                                   std::span<const Candidate> candidates, bool accumulate) {
  const std::uint64_t key = key_of(backend, query, candidates, accumulate);
  const auto found = known_.find(key);
  const bool is_known = found != known_.end() && found->second.nanoseconds.size() == candidates.size() &&
                        (found->second.own || tuning_ != Tuning::measure || frozen_);
  if (!is_known && (frozen_ || tuning_ == Tuning::off)) return {};
  if (!is_known) {
    Times& times = known_[key];
    times = {{}, true};
    for (const double seconds : measure(backend, query, candidates, accumulate))
      times.nanoseconds.push_back(std::llround(seconds * 1e9));
    ++measured_;
  }
  std::vector<double> seconds;
  for (const std::int64_t nanoseconds : known_.at(key).nanoseconds)
    seconds.push_back(static_cast<double>(nanoseconds) * 1e-9);
  return seconds;
}

std::string Tuner::to_text() const {
  std::string lines;
  for (const auto& [key, times] : known_)
    lines += fmt::format("{:016x} {}\n", key, fmt::join(times.nanoseconds, " "));
  return fmt::format("{} {:016x}\n{}", title, fnv(lines), lines);
}

bool Tuner::add(std::string_view text) {
  const auto head = take_line(text);
  if (head != fmt::format("{} {:016x}", title, fnv(text))) return false;
  std::map<std::uint64_t, Times> added;
  while (auto line = take_line(text)) {
    std::uint64_t key = 0;
    if (!take_number(*line, key, 16)) return false;
    Times& times = added[key];
    for (std::int64_t nanoseconds = 0; take_number(*line, nanoseconds, 10);)
      times.nanoseconds.push_back(nanoseconds);
    if (!line->empty() || times.nanoseconds.empty()) return false;
  }
  if (!text.empty()) return false;
  for (auto& [key, times] : added)
    if (!known_[key].own) known_[key] = std::move(times);
  return true;
}

}  // namespace plexaura

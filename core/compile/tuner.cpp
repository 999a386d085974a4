#include "core/compile/tuner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>

#include "core/base/clock.h"
#include "core/base/fnv.h"
#include "core/compile/measure.h"
#include "core/device/region_text.h"

namespace plexaura {

namespace {

constexpr std::string_view title = "plexaura kernel times 1";
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  // stands for a kernel that fails

// Removes the first line from the text and returns it; returns nothing if the line has no end.
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

std::uint64_t key_of(const Backend& backend, const RegionQuery& query,
                     std::span<const Candidate> candidates) {
  std::uint64_t key = fnv(where_times_hold(backend.info()));
  key = fnv(query.graph.mode() == Mode::train ? "train\n" : "inference\n", key);
  for (const Candidate& candidate : candidates)
    key = fnv(fmt::format("{}\n{}\n", candidate.implementation, text_of(query, candidate)), key);
  return key;
}

}  // namespace

std::string where_times_hold(const BackendInfo& info) {
  return fmt::format("{}\n{}\n{}\n{}\n", info.name, info.description, info.kind, info.build);
}

const Tuner::Times* Tuner::known_times(std::uint64_t key, std::size_t candidates) const {
  const auto found = known_.find(key);
  if (found == known_.end() || found->second.nanoseconds.size() != candidates) return nullptr;
  const bool is_old = !found->second.own && tuning_ == Tuning::measure && !frozen_;
  return is_old ? nullptr : &found->second;
}

void Tuner::measure_now(std::uint64_t key, Backend& backend, const RegionQuery& query,
                        std::span<const Candidate> candidates) {
  const double begin = seconds_now();
  Times times{.own = true};
  for (const double seconds : measure(backend, query, candidates))
    times.nanoseconds.push_back(std::isfinite(seconds) ? std::llround(seconds * 1e9) : never);
  known_[key] = std::move(times);
  seconds_spent_ += seconds_now() - begin;
}

std::vector<double> Tuner::seconds(Backend& backend, const RegionQuery& query,
                                   std::span<const Candidate> candidates) {
  const std::uint64_t key = key_of(backend, query, candidates);
  if (known_times(key, candidates.size()) == nullptr) {
    if (frozen_ || tuning_ == Tuning::off) return {};
    measure_now(key, backend, query, candidates);
  }
  Times& times = known_.at(key);
  times.used = true;
  std::vector<double> seconds;
  for (const std::int64_t nanoseconds : times.nanoseconds)
    seconds.push_back(nanoseconds == never ? std::numeric_limits<double>::infinity()
                                           : static_cast<double>(nanoseconds) * 1e-9);
  return seconds;
}

std::size_t Tuner::count(Part part) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [&](const auto& entry) { return entry.second.belongs_to(part); }));
}

std::string Tuner::to_text(Part part) const {
  std::string lines;
  for (const auto& [key, times] : known_)
    if (times.belongs_to(part)) lines += fmt::format("{:016x} {}\n", key, fmt::join(times.nanoseconds, " "));
  return fmt::format("{} {:016x}\n{}", title, fnv(lines), lines);
}

bool Tuner::add(std::string_view text, bool own) {
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
  for (auto& [key, times] : added) {
    Times& known = known_[key];
    if (known.own) continue;
    known.nanoseconds = std::move(times.nanoseconds);
    known.own = own;
  }
  return true;
}

}  // namespace plexaura

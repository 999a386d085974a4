#include "distributed/servers/push_judge.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

constexpr std::size_t most_norms = 32;
constexpr std::string_view remedy = "training diverged; lower the learning rate";

template <class T>
double norm_of(std::span<const T> numbers) {
  double squares = 0;
  for (const T number : numbers) squares += static_cast<double>(number) * static_cast<double>(number);
  return std::sqrt(squares);
}

template <class T>
double distance_of(std::span<const T> numbers, std::span<const T> others) {
  double squares = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double difference = static_cast<double>(numbers[i]) - static_cast<double>(others[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

template <class T>
bool are_finite(std::span<const T> numbers) {
  return std::ranges::all_of(numbers, [](T number) { return std::isfinite(number); });
}

}  // namespace

std::optional<std::string> PushJudge::take_in(const ServerRule& rule, const WeightForm& form,
                                              const Push& push, std::span<std::byte> weights) {
  std::optional<std::string> objection;
  with_elements(form.dtype, [&]<class T>(T) {
    objection = take_elements<T>(rule, form.trainables, push, elements_of<T>(weights));
  });
  return objection;
}

template <class T>
std::optional<std::string> PushJudge::take_elements(const ServerRule& rule, std::size_t trainables,
                                                    const Push& push, std::span<T> weights) {
  const std::span<const T> pushed = elements_of<const T>(push.content);
  if (!are_finite(pushed))
    return fmt::format("the server takes in no weights that are not finite: {}", remedy);
  const std::span<const T> before = weights.first(trainables);
  const std::span<const T> own = pushed.first(trainables);
  const double change = rule.push == ServerRule::Push::weights ? distance_of(own, before) : norm_of(own);
  const double norm = norm_of(before);
  const double usual = median();
  const double largest = limit_ * std::max(norm, usual);
  if (largest > 0 && !(change <= largest))
    return fmt::format(
        "the server takes in no push that changes the weights by {:.3g}, which is more than {:g} times their "
        "norm "
        "of {:.3g} and the {:.3g} of other pushes: {}, or raise distributed.push_limit",
        change, limit_, norm, usual, remedy);
  after_.resize(weights.size_bytes());
  const std::span<T> after = elements_of<T>(std::span(after_));
  std::ranges::copy(weights, after.begin());
  mix_in<T>(rule, push.staleness, push.clients, trainables, pushed, after);
  if (!are_finite(std::span<const T>(after)))
    return fmt::format("the server refuses a push after which its weights would not be finite: {}", remedy);
  std::ranges::copy(after, weights.begin());
  norms_.push_back(change);
  if (norms_.size() > most_norms) norms_.pop_front();
  return std::nullopt;
}

// Returns the median of the norms; 0 if there are none.
double PushJudge::median() const {
  if (norms_.empty()) return 0;
  std::vector<double> norms(norms_.begin(), norms_.end());
  const auto middle = norms.begin() + std::ssize(norms) / 2;
  std::ranges::nth_element(norms, middle);
  return *middle;
}

}  // namespace plexaura

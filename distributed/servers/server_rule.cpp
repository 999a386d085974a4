#include "distributed/servers/server_rule.h"

#include <algorithm>
#include <cmath>

namespace plexaura {

double ServerRule::share(std::int64_t staleness) const {
  return mix * std::pow(1 + static_cast<double>(staleness), -damping);
}

template <class T>
void compose_push(const ServerRule& rule, std::size_t trainables, std::span<const T> weights,
                  std::span<const T> began, std::span<T> pushed) {
  std::ranges::copy(weights, pushed.begin());
  if (rule.push == ServerRule::Push::weights) return;
  for (std::size_t i = 0; i < trainables; ++i) pushed[i] -= began[i];
}

template <class T>
void carry_on(std::span<const T> answer, std::span<const T> pushed, std::span<T> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += answer[i] - pushed[i];
}

template <class T>
void mix_in(const ServerRule& rule, std::int64_t staleness, std::int64_t clients, std::size_t trainables,
            std::span<const T> pushed, std::span<T> weights) {
  const T share = static_cast<T>(rule.share(staleness));
  if (rule.push == ServerRule::Push::weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += share * (pushed[i] - weights[i]);
    return;
  }
  for (std::size_t i = 0; i < trainables; ++i) weights[i] += share * pushed[i];
  for (std::size_t i = trainables; i < weights.size(); ++i)
    weights[i] += (pushed[i] - weights[i]) / static_cast<T>(clients);
}

template void compose_push(const ServerRule&, std::size_t, std::span<const float>, std::span<const float>,
                           std::span<float>);
template void compose_push(const ServerRule&, std::size_t, std::span<const double>, std::span<const double>,
                           std::span<double>);
template void carry_on(std::span<const float>, std::span<const float>, std::span<float>);
template void carry_on(std::span<const double>, std::span<const double>, std::span<double>);
template void mix_in(const ServerRule&, std::int64_t, std::int64_t, std::size_t, std::span<const float>,
                     std::span<float>);
template void mix_in(const ServerRule&, std::int64_t, std::int64_t, std::size_t, std::span<const double>,
                     std::span<double>);

}  // namespace plexaura

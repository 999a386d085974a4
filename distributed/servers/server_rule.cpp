#include "distributed/servers/server_rule.h"

#include <algorithm>
#include <cmath>

#include "distributed/node/reduce.h"

namespace plexaura {

double ServerRule::share(std::int64_t staleness) const {
  return mix * std::pow(1 + static_cast<double>(staleness), -damping);
}

void compose_push(const ServerRule& rule, const WeightForm& form, std::span<const std::byte> weights,
                  std::span<const std::byte> began, std::span<std::byte> pushed) {
  std::ranges::copy(weights, pushed.begin());
  if (rule.push == ServerRule::Push::weights) return;
  with_elements(form.dtype, [&]<class T>(T) {
    const std::span<T> changes = elements_of<T>(pushed);
    const std::span<const T> old = elements_of<const T>(began);
    for (std::size_t i = 0; i < form.trainables; ++i) changes[i] -= old[i];
  });
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

template void carry_on(std::span<const float>, std::span<const float>, std::span<float>);
template void carry_on(std::span<const double>, std::span<const double>, std::span<double>);
template void mix_in(const ServerRule&, std::int64_t, std::int64_t, std::size_t, std::span<const float>,
                     std::span<float>);
template void mix_in(const ServerRule&, std::int64_t, std::int64_t, std::size_t, std::span<const double>,
                     std::span<double>);

}  // namespace plexaura

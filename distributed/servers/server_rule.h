#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plexaura {

// How a parameter server takes in what its clients push.
struct ServerRule {
  enum class Push : std::uint8_t {
    weights,  // the server's weights go a share of their way to the client's
    changes   // a share of those of trainables since the client got its weights is added to the server's
  };
  Push push = Push::weights;
  // The share, above 0 and at most 1, for a push of staleness s multiplied by (1 + s)^-damping. The staleness is the number
  // of pushes that the server took in since the client got its weights.
  double mix = 0.5;
  double damping = 0;

  double share(std::int64_t staleness) const;
};

// What a client pushes: its weights, or how the trainables, which lie first, differ from those that it `began` with, and
// buffers as they are.
template <class T>
void compose_push(const ServerRule& rule, std::size_t trainables, std::span<const T> weights,
                  std::span<const T> began, std::span<T> pushed);

// Of a client that has gone on from the weights it `pushed`, when those come that are the answer: it goes on from them,
// and keeps what it has learned since.
template <class T>
void carry_on(std::span<const T> answer, std::span<const T> pushed, std::span<T> weights);

// Takes in a push. Where changes are pushed, the server's buffers, which lie behind the trainables, go one part of their
// way to the client's, of as many as there are clients, whatever the share. So a buffer stays between those of the server
// and the client: a sum of changes, which may be stale, could make a running variance negative.
template <class T>
void mix_in(const ServerRule& rule, std::int64_t staleness, std::int64_t clients, std::size_t trainables,
            std::span<const T> pushed, std::span<T> weights);

}  // namespace plexaura

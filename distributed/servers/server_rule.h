#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor/dtype.h"

namespace plexaura {

// The form of weights that a server and its clients share: the elements of trainable parameters, followed by
// the elements of buffers.
struct WeightForm {
  DType dtype = DType::float32;
  std::size_t trainables = 0;  // number of elements of trainable parameters
};

// The rule by which a parameter server changes its weights after a client's push.
struct ServerRule {
  enum class Push : std::uint8_t {
    weights,  // the server's weights move a share of the way to the client's
    changes   // the server adds a share of the changes of trainables since the client got its weights
  };
  Push push = Push::weights;
  // The share that a push moves the weights, above 0 and at most 1. For a push of staleness s it is
  // multiplied by (1 + s)^-damping. The staleness is the number of pushes that the server took in since the
  // client got its weights.
  double mix = 0.5;
  double damping = 0;

  double share(std::int64_t staleness) const;
};

// Writes into `pushed` the contents of a client's push: its weights, or its buffers and the changes of
// trainable parameters since `began`.
void compose_push(const ServerRule& rule, const WeightForm& form, std::span<const std::byte> weights,
                  std::span<const std::byte> began, std::span<std::byte> pushed);

// Sets the weights of a client that has made steps since its push: to the weights in the server's answer,
// plus the changes that the client has made since the push.
template <class T>
void carry_on(std::span<const T> answer, std::span<const T> pushed, std::span<T> weights);

// Takes a push into the weights of a server. If changes are pushed, the server's buffers move towards the client's by one part in
// as many as there are clients, whatever the share is. So a buffer stays between that of the server and that of the client: a sum of
// stale changes could make a running variance negative.
template <class T>
void mix_in(const ServerRule& rule, std::int64_t staleness, std::int64_t clients, std::size_t trainables,
            std::span<const T> pushed, std::span<T> weights);

}  // namespace plexaura

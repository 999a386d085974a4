#include "distributed/servers/jobs/visiting.h"

#include <utility>

#include "distributed/node/reduce.h"

namespace plexaura {

// The server's weights may have gone on while this client compiled.
void Visiting::begin(WeightsImmigration& border) {
  border_ = &border;
  form_.emplace(border);
  weights_.resize(form_->shared_bytes());
  pushed_.resize(form_->shared_bytes());
  exchange();
}

void Visiting::after_update() {
  if (++steps_ == push_every_) exchange();
}

void Visiting::exchange() {
  if (steps_ > 0) {
    form_->read([this](std::string_view name) { return border_->emigrate(name); }, weights_);
    with_elements(form_->dtype(), [&]<class T>(T) {
      compose_push<T>(rule_, form_->trainables(), elements_of<const T>(std::span<const std::byte>(weights_)),
                      elements_of<const T>(std::span<const std::byte>(began_)),
                      elements_of<T>(std::span(pushed_)));
    });
  }
  take(visitor_.exchange(pushed_, std::exchange(steps_, 0)));
}

void Visiting::take(std::vector<std::byte> weights) {
  form_->write(weights,
               [this](std::string_view name, const Tensor& value) { border_->immigrate(name, value); });
  began_ = std::move(weights);
}

}  // namespace plexaura

#include "distributed/servers/jobs/visiting.h"

#include <utility>

namespace plexaura {

// Begins with new weights from the server, because other clients may have changed them while this client
// compiled.
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
    compose_push(rule_, {form_->dtype(), form_->trainables()}, weights_, began_, pushed_);
  }
  take(visitor_.exchange(pushed_, std::exchange(steps_, 0)));
}

void Visiting::take(std::vector<std::byte> weights) {
  form_->write(weights,
               [this](std::string_view name, const Tensor& value) { border_->immigrate(name, value); });
  began_ = std::move(weights);
}

}  // namespace plexaura

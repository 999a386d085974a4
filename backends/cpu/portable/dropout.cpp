#include "core/ops/dropout.h"

#include "backends/cpu/portable/draws.h"
#include "backends/cpu/portable/portable.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

template <class T>
void forward(const HostCall& call, const Dropout& op) {
  const auto* random = call.inputs[1].as<std::int64_t>();
  const philox::Draws draws(random[0], random[1], op.options().stream);
  const std::int64_t first = first_index(call.inputs[0].shape(), op.options().batch, random[2]);
  const auto dropped_below = static_cast<std::uint64_t>(op.options().p * 4294967296.0);
  const auto scale = static_cast<Compute<T>>(1 / (1 - op.options().p));
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  bool* mask = call.outputs[1].as<bool>();
  parallel_pieces(call.inputs[0].elements(), 20, [&](std::int64_t begin, std::int64_t end) {
    for_each_draw(draws, first, begin, end,
                  [&](std::int64_t i, const philox::Block& block, std::int64_t lane) {
                    const bool kept = block.words[lane] >= dropped_below;
                    if (dst != nullptr) dst[i] = kept ? T(static_cast<Compute<T>>(src[i]) * scale) : T(0);
                    if (mask != nullptr) mask[i] = kept;
                  });
  });
}

}  // namespace

void portable_dropout(const HostCall& call) {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { forward<T>(call, op_cast<Dropout>(call.op)); });
}

void portable_dropout_grad(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const double scale = 1 / (1 - op_cast<DropoutGrad>(call.op).options().p);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* diff_dst = call.inputs[0].as<T>();
    const bool* mask = call.inputs[1].as<bool>();
    T* diff_src = call.outputs[0].as<T>();
    parallel_pieces(call.inputs[0].elements(), 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        diff_src[i] =
            mask[i] ? T(static_cast<Compute<T>>(diff_dst[i]) * static_cast<Compute<T>>(scale)) : T(0);
    });
  });
}

}  // namespace plexaura

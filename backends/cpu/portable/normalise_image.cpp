#include "core/ops/normalise_image.h"

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

using namespace portable;

void portable_normalise_image(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const auto& op = op_cast<NormaliseImage>(call.op);
  const std::int64_t channels = result.shape()[1];
  const std::int64_t planes = result.shape()[0] * channels;
  const std::int64_t pixels = result.elements() / planes;
  const auto* src = call.inputs[0].as<std::uint8_t>();
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = result.as<T>();
    parallel_for(planes, pixels, [&](std::int64_t plane) {
      const auto mean = static_cast<Compute<T>>(op.mean(plane % channels));
      const auto stddev = static_cast<Compute<T>>(op.stddev(plane % channels));
      for (std::int64_t i = plane * pixels; i < (plane + 1) * pixels; ++i)
        dst[i] = T((static_cast<Compute<T>>(src[i]) / 255 - mean) / stddev);
    });
  });
}

}  // namespace plexaura

#include <vector>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/image/image_loops.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "core/ops/normalise_image.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_pixel = 0.3;

struct Channel {
  float mean;
  float stddev;
};

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  const auto& op = op_cast<NormaliseImage>(query.op());
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  std::vector<Channel> channels;
  for (std::int64_t i = 0; i < shape[1]; ++i)
    channels.push_back({static_cast<float>(op.mean(i)), static_cast<float>(op.stddev(i))});
  const std::int64_t planes = shape[0] * shape[1];
  const std::int64_t pixels = shape.elements() / planes;
  return make_kernel([=, channels = std::move(channels)](const Binding& at) {
    const auto* x = reinterpret_cast<const std::uint8_t*>(at.inputs[0]);
    parallel_pieces(planes, nanoseconds_per_pixel * static_cast<double>(pixels),
                    [&, y = floats(at.outputs[0])](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t plane = begin; plane < end; ++plane) {
                        const Channel& of = channels[static_cast<std::size_t>(plane) % channels.size()];
                        normalise_plane(x + plane * pixels, pixels, of.mean, of.stddev, y + plane * pixels);
                      }
                    });
  });
}

class ImageSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "normalise_image") return {};
    return row_major_floats(query, make_for);
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_image_source() { return std::make_unique<ImageSource>(); }

}  // namespace plexaura::fast

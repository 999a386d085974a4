#include <algorithm>
#include <array>

#include "backends/cpu/fast/channel_view.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/pool/avg_pool_loops.h"
#include "backends/cpu/fast/pool/pool_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/pool2d.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_vector = 0.6;  // for each vector of a window

// Calls body(place) for each row of all samples and blocks.
template <class Body>
void for_each_row(const PixelView& view, double nanoseconds_per_pixel, const Body& body) {
  const std::int64_t rows = view.samples * view.blocks * view.height;
  parallel_pieces(rows, nanoseconds_per_pixel * static_cast<double>(view.width),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t plane = i / view.height;
                      body(PoolPlace{plane / view.blocks, plane % view.blocks, i % view.height});
                    }
                  });
}

double nanoseconds_per_window(const Window2d& window) {
  return nanoseconds_per_vector * static_cast<double>(window.kernel.h * window.kernel.w);
}

std::uint8_t* bytes(Address address) { return reinterpret_cast<std::uint8_t*>(address); }

template <class T>
std::shared_ptr<const Kernel> make_forward(const PoolShapes& shapes) {
  return make_kernel([shapes, pool = max_pool_loops<T>(shapes.dst.lanes).row](const Binding& at) {
    for_each_row(shapes.dst, nanoseconds_per_window(shapes.window), [&](PoolPlace place) {
      pool(shapes, place, elements<T>(at.inputs[0]), elements<T>(at.outputs[0]), bytes(at.outputs[1]));
    });
  });
}

template <class T>
std::shared_ptr<const Kernel> make_grad(const PoolShapes& shapes) {
  const MaxPoolLoops<T> loops = max_pool_loops<T>(shapes.dst.lanes);
  if (is_tiling(shapes.window))
    return make_kernel([shapes, grad_row = loops.tiling_grad_row](const Binding& at) {
      for_each_row(shapes.src, nanoseconds_per_vector, [&](PoolPlace place) {
        grad_row(shapes, place, elements<T>(at.inputs[0]), bytes(at.inputs[1]), elements<T>(at.outputs[0]));
      });
    });
  return make_kernel([shapes, grad_plane = loops.grad_plane](const Binding& at) {
    const auto pixels = static_cast<double>(shapes.dst.height * shapes.dst.width);
    const std::int64_t blocks = shapes.src.blocks;
    parallel_pieces(shapes.src.samples * blocks, pixels * nanoseconds_per_window(shapes.window),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i)
                        grad_plane(shapes, {i / blocks, i % blocks, 0}, elements<T>(at.inputs[0]),
                                   bytes(at.inputs[1]), elements<T>(at.outputs[0]));
                    });
  });
}

template <class T>
std::shared_ptr<const Kernel> make_average(const AvgPoolShapes& shapes) {
  return make_kernel([shapes, pool = avg_pool_loops<T>(shapes.of.dst.lanes).row](const Binding& at) {
    for_each_row(shapes.of.dst, nanoseconds_per_window(shapes.of.window), [&](PoolPlace place) {
      pool(shapes, place, elements<T>(at.inputs[0]), elements<T>(at.outputs[0]));
    });
  });
}

template <class T>
std::shared_ptr<const Kernel> make_average_grad(const AvgPoolShapes& shapes) {
  const Window2d& window = shapes.of.window;
  const double windows_of_pixel = static_cast<double>(window.kernel.h * window.kernel.w) /
                                  static_cast<double>(window.stride.h * window.stride.w);
  const double nanoseconds_per_pixel = nanoseconds_per_vector * (1 + windows_of_pixel);
  return make_kernel([=, grad_row = avg_pool_loops<T>(shapes.of.dst.lanes).grad_row](const Binding& at) {
    for_each_row(shapes.of.src, nanoseconds_per_pixel, [&](PoolPlace place) {
      grad_row(shapes, place, elements<T>(at.inputs[0]), elements<T>(at.outputs[0]));
    });
  });
}

constexpr auto max_forward = "max_pool2d";
constexpr auto max_backward = "max_pool2d_grad";
constexpr auto average_forward = "avg_pool2d";
constexpr auto average_backward = "avg_pool2d_grad";

bool is_known(const std::string& kind) {
  constexpr std::array kinds{max_forward, max_backward, average_forward, average_backward};
  return std::ranges::find(kinds, kind) != kinds.end();
}

// Returns the layouts of the operands that have vectors of channels. If there are none, returns blocked
// channels.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < query.given.size(); ++i)
    if (query.given[i] && pixel_view(*query.given[i], query.type(query.region.inputs[i]).shape) &&
        std::ranges::find(layouts, *query.given[i]) == layouts.end())
      layouts.push_back(*query.given[i]);
  if (layouts.empty()) layouts.push_back(blocked_layout(query.type(query.region.inputs[0]).shape));
  return layouts;
}

template <class T>
std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const Layout& layout) {
  const PixelView in = *pixel_view(layout, query.type(query.region.inputs[0]).shape);
  const PixelView out = *pixel_view(layout, query.type(query.region.outputs[0]).shape);
  const Window2d& window = op_cast<PoolOp>(query.op()).window();
  const std::string& kind = query.region.kind;
  if (kind == max_forward) return make_forward<T>({window, in, out});
  if (kind == max_backward) return make_grad<T>({window, out, in});
  if (kind == average_forward)
    return make_average<T>({{window, in, out}, op_cast<AvgPool2dOp>(query.op()).options().count_include_pad});
  return make_average_grad<T>(
      {{window, out, in}, op_cast<AvgPool2dGrad>(query.op()).options().count_include_pad});
}

class PoolSource final : public KernelSource {
 public:
  explicit PoolSource(DType dtype) : dtype_(dtype) {}

  Denormals denormals() const override {
    return dtype_ == DType::float32 ? Denormals::flushed : KernelSource::denormals();
  }

  bool knows(const std::string& kind) const override { return is_known(kind); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    if (!is_known(query.region.kind)) return candidates;
    if (query.type(query.region.inputs[0]).dtype != dtype_ ||
        !has_elements(query.graph, query.region.inputs[0]) ||
        !has_elements(query.graph, query.region.outputs[0]))
      return candidates;
    for (const Layout& layout : layouts_to_offer(query)) {
      Candidate candidate;
      candidate.implementation = "fast";
      candidate.inputs.assign(query.region.inputs.size(), layout);
      candidate.outputs.assign(query.region.outputs.size(), layout);
      candidate.seconds = seconds_of_traffic(query, candidate);
      candidate.make = [query, layout, dtype = dtype_] {
        return dtype == DType::float64 ? make_for<double>(query, layout) : make_for<float>(query, layout);
      };
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

 private:
  DType dtype_;
};

}  // namespace

std::unique_ptr<const KernelSource> make_pool_source(DType dtype) {
  return std::make_unique<PoolSource>(dtype);
}

}  // namespace plexaura::fast

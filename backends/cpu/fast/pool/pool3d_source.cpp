#include <memory>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/pool/pool3d_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/pool3d.h"
#include "core/ops/pool_axis.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_voxel = 0.5;
constexpr std::int64_t most_voxels = std::int64_t{1} << 31;  // positions have 32 bits

struct Pool3dKernel {
  PoolRanges3d ranges;
  std::int64_t images;

  template <class Body>
  void for_images(const Body& body) const {
    const double cost = nanoseconds_per_voxel * static_cast<double>(ranges.voxels() + ranges.places());
    parallel_pieces(images, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t image = begin; image < end; ++image)
        body(image * ranges.voxels(), image * ranges.places());
    });
  }
};

template <class T>
void forward_max(const Pool3dKernel& pool, const Binding& at) {
  T* y = elements<T>(at.outputs[0]);
  auto* index = elements<std::int64_t>(at.outputs[1]);
  pool.for_images([&, loop = pool3d_loops<T>().max](std::int64_t voxel, std::int64_t place) {
    loop(pool.ranges, elements<T>(at.inputs[0]) + voxel, y == nullptr ? nullptr : y + place,
         index == nullptr ? nullptr : index + place);
  });
}

template <class T>
void backward_max(const Pool3dKernel& pool, const Binding& at) {
  const auto* index = elements<std::int64_t>(at.inputs[1]);
  pool.for_images([&, loop = pool3d_loops<T>().max_grad](std::int64_t voxel, std::int64_t place) {
    loop(pool.ranges, elements<T>(at.inputs[0]) + place, index + place, elements<T>(at.outputs[0]) + voxel);
  });
}

template <class T>
void forward_average(const Pool3dKernel& pool, const Binding& at) {
  pool.for_images([&, loop = pool3d_loops<T>().average](std::int64_t voxel, std::int64_t place) {
    loop(pool.ranges, elements<T>(at.inputs[0]) + voxel, elements<T>(at.outputs[0]) + place);
  });
}

template <class T>
void backward_average(const Pool3dKernel& pool, const Binding& at) {
  pool.for_images([&, loop = pool3d_loops<T>().average_grad](std::int64_t voxel, std::int64_t place) {
    loop(pool.ranges, elements<T>(at.inputs[0]) + place, elements<T>(at.outputs[0]) + voxel);
  });
}

constexpr std::array kinds{"max_pool3d", "max_pool3d_grad", "avg_pool3d", "avg_pool3d_grad"};

struct Pool3dMethod {
  using Run = void (*)(const Pool3dKernel& pool, const Binding& at);

  const Pool3dOptions* options;
  Run of_floats;
  Run of_doubles;
  bool forward;
};

std::optional<Pool3dMethod> method_of(const RegionQuery& query) {
  const std::string& kind = query.region.kind;
  if (kind == "max_pool3d")
    return Pool3dMethod{&op_cast<MaxPool3d>(query.op()).options(), forward_max<float>, forward_max<double>,
                        true};
  if (kind == "max_pool3d_grad")
    return Pool3dMethod{&op_cast<MaxPool3dGrad>(query.op()).options(), backward_max<float>,
                        backward_max<double>, false};
  if (kind == "avg_pool3d")
    return Pool3dMethod{&op_cast<AvgPool3d>(query.op()).options(), forward_average<float>,
                        forward_average<double>, true};
  if (kind == "avg_pool3d_grad")
    return Pool3dMethod{&op_cast<AvgPool3dGrad>(query.op()).options(), backward_average<float>,
                        backward_average<double>, false};
  return std::nullopt;
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  const Pool3dMethod method = *method_of(query);
  const Shape& in = query.type(query.region.inputs[0]).shape;
  const Shape& out = query.type(query.region.outputs[0]).shape;
  const PoolAxes axes = pool_axes(*method.options, spatial_3d(method.forward ? in : out),
                                  spatial_3d(method.forward ? out : in));
  const bool counts = method.options->count_include_pad;
  const bool is_double = query.type(query.region.inputs[0]).dtype == DType::float64;
  return make_kernel([run = is_double ? method.of_doubles : method.of_floats,
                      pool = Pool3dKernel{{PoolRanges(axes.d, counts), PoolRanges(axes.h, counts),
                                           PoolRanges(axes.w, counts)},
                                          in[0] * in[1]}](const Binding& at) { run(pool, at); });
}

class Pool3dSource final : public KernelSource {
 public:
  bool knows(const std::string& kind) const override { return std::ranges::find(kinds, kind) != kinds.end(); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!method_of(query)) return {};
    const DType dtype = query.type(query.region.inputs[0]).dtype;
    if (dtype != DType::float32 && dtype != DType::float64) return {};
    for (const Value value : {query.region.inputs[0], query.region.outputs[0]}) {
      const Shape& shape = query.type(value).shape;
      if (!has_elements(query.graph, value) || shape[4] > longest_pool_row ||
          shape[2] * shape[3] * shape[4] >= most_voxels)
        return {};
    }
    Candidate candidate = row_major_candidate(query);
    candidate.make = [query] { return make_for(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_pool3d_source() { return std::make_unique<Pool3dSource>(); }

}  // namespace plexaura::fast

#include "backends/cpu/onednn/dnnl_compat.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <oneapi/dnnl/dnnl_debug.h>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/onednn/sources.h"

namespace plexaura::onednn {

namespace {

// The contents of a memory descriptor, in a form that is the same for all versions of the library.
struct Blocking {
  bool plain_or_blocked = false;
  memory::dims padded;
  memory::dims strides;
  std::vector<Layout::Block> blocks;
};

#if DNNL_VERSION_MAJOR >= 3

Blocking blocking_of(const memory::desc& desc) {
  Blocking blocking;
  blocking.plain_or_blocked =
      desc.get_format_kind() == memory::format_kind::blocked && desc.get_submemory_offset() == 0;
  if (!blocking.plain_or_blocked) return blocking;
  blocking.padded = desc.get_padded_dims();
  blocking.strides = desc.get_strides();
  const memory::dims sizes = desc.get_inner_blks();
  const memory::dims axes = desc.get_inner_idxs();
  for (std::size_t i = 0; i < sizes.size(); ++i) blocking.blocks.push_back({axes[i], sizes[i]});
  return blocking;
}

template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(cpu_engine(), arguments..., attributes);
}

template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const dnnl::primitive_attr& attributes, const Hint& hint,
                       const Arguments&... arguments) {
  return typename Primitive::primitive_desc(cpu_engine(), arguments..., hint, attributes);
}

#else

Blocking blocking_of(const memory::desc& desc) {
  Blocking blocking;
  const dnnl_memory_desc_t& data = desc.data;
  const dnnl_blocking_desc_t& format = data.format_desc.blocking;
  blocking.plain_or_blocked = data.format_kind == dnnl_blocked && data.offset0 == 0 &&
                              data.extra.flags == dnnl_memory_extra_flag_none;
  if (!blocking.plain_or_blocked) return blocking;
  blocking.padded.assign(data.padded_dims, data.padded_dims + data.ndims);
  blocking.strides.assign(format.strides, format.strides + data.ndims);
  for (int i = 0; i < format.inner_nblks; ++i)
    blocking.blocks.push_back({format.inner_idxs[i], format.inner_blks[i]});
  return blocking;
}

template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes, cpu_engine());
}

template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const dnnl::primitive_attr& attributes, const Hint& hint,
                       const Arguments&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes, cpu_engine(),
                                            hint);
}

#endif

// Returns all layouts that the library names. The names have the form of Layout's to_string(): "aBcd16b".
const std::vector<std::pair<std::string, memory::format_tag>>& named_tags() {
  static const auto tags = [] {
    std::vector<std::pair<std::string, memory::format_tag>> named;
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag)
      named.emplace_back(dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)),
                         static_cast<memory::format_tag>(tag));
    return named;
  }();
  return tags;
}

std::optional<memory::data_type> data_type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return memory::data_type::f32;
    case DType::bfloat16:
      return memory::data_type::bf16;
    case DType::float16:
      return memory::data_type::f16;
    case DType::int32:
      return memory::data_type::s32;
    case DType::uint8:
      return memory::data_type::u8;
    default:
      return std::nullopt;
  }
}

// Compares padded extents, and strides except along axes with only one step, whose strides have no meaning.
bool same_strides(const Layout& layout, const Shape& shape, const Blocking& blocking) {
  if (layout.padded(shape).extents() != blocking.padded) return false;
  const std::vector<std::int64_t> strides = layout.outer_strides(shape);
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const auto index = static_cast<std::size_t>(axis);
    const bool one_step = blocking.padded[index] == layout.block_of(axis);
    if (!one_step && strides[index] != blocking.strides[index]) return false;
  }
  return true;
}

// Limits oneDNN to the instructions of this build, unless an environment variable sets a limit. Must be
// called before oneDNN makes anything.
void limit_instructions() {
#ifdef PLEXAURA_ONEDNN_ISA
  if (std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr && std::getenv("DNNL_MAX_CPU_ISA") == nullptr)
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::PLEXAURA_ONEDNN_ISA);
#endif
}

// The most primitives that oneDNN keeps in its cache, even if no kernel uses them any more. A small primitive
// takes 45 kB. oneDNN's default is 1024.
constexpr int kept_primitives = 256;

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = [] {
    limit_instructions();
    dnnl::set_primitive_cache_capacity(kept_primitives);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::stream& cpu_stream() {
  static dnnl::stream stream(cpu_engine());
  return stream;
}

memory::dims dims_of(const Shape& shape) { return shape.extents(); }

bool multiplies(DType dtype) {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

memory::desc any_layout(const memory::dims& dims, DType dtype) {
  return {dims, data_type_of(dtype).value(), memory::format_tag::any};
}

memory::desc row_major(const memory::dims& dims, DType dtype) {
  return strided(dims, Shape(dims).strides(), dtype);
}

memory::desc strided(const memory::dims& dims, const memory::dims& strides, DType dtype) {
  return {dims, data_type_of(dtype).value(), strides};
}

std::optional<memory::desc> desc_of(const Layout& layout, const TensorType& type) {
  const auto data_type = data_type_of(type.dtype);
  if (!data_type) return std::nullopt;
  if (type.shape.rank() == 0) return memory::desc({1}, *data_type, memory::format_tag::a);
  if (layout.blocks().empty())
    return memory::desc(dims_of(type.shape), *data_type, layout.outer_strides(type.shape));
  const std::string wanted = to_string(layout);
  for (const auto& [name, tag] : named_tags())
    if (name == wanted) return memory::desc(dims_of(type.shape), *data_type, tag);
  return std::nullopt;
}

std::optional<Layout> layout_of(const memory::desc& desc, const Shape& shape) {
  const Blocking blocking = blocking_of(desc);
  if (!blocking.plain_or_blocked) return std::nullopt;
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::int64_t axis) {
    return blocking.strides[static_cast<std::size_t>(axis)];
  });
  Layout layout(std::move(order), blocking.blocks);
  if (!same_strides(layout, shape, blocking)) return std::nullopt;
  return layout;
}

ConvolutionForward describe_forward(const ConvolutionDescs& descs, dnnl::prop_kind kind,
                                    const dnnl::primitive_attr& attributes) {
  if (descs.bias)
    return describe<dnnl::convolution_forward>(attributes, kind, descs.algorithm, descs.src, descs.weights,
                                               *descs.bias, descs.dst, descs.strides, descs.dilation,
                                               descs.padding, descs.padding_end);
  return describe<dnnl::convolution_forward>(attributes, kind, descs.algorithm, descs.src, descs.weights,
                                             descs.dst, descs.strides, descs.dilation, descs.padding,
                                             descs.padding_end);
}

ConvolutionBackwardData describe_backward_data(const ConvolutionDescs& descs,
                                               const dnnl::primitive_attr& attributes,
                                               const ConvolutionForward& hint) {
  return describe_backward<dnnl::convolution_backward_data>(attributes, hint, descs.algorithm, descs.src,
                                                            descs.weights, descs.dst, descs.strides,
                                                            descs.dilation, descs.padding, descs.padding_end);
}

ConvolutionBackwardWeights describe_backward_weights(const ConvolutionDescs& descs,
                                                     const dnnl::primitive_attr& attributes,
                                                     const ConvolutionForward& hint) {
  if (descs.bias)
    return describe_backward<dnnl::convolution_backward_weights>(
        attributes, hint, descs.algorithm, descs.src, descs.weights, *descs.bias, descs.dst, descs.strides,
        descs.dilation, descs.padding, descs.padding_end);
  return describe_backward<dnnl::convolution_backward_weights>(
      attributes, hint, descs.algorithm, descs.src, descs.weights, descs.dst, descs.strides, descs.dilation,
      descs.padding, descs.padding_end);
}

dnnl::matmul::primitive_desc describe_matmul(const MatMulDescs& descs,
                                             const dnnl::primitive_attr& attributes) {
  if (descs.bias) return describe<dnnl::matmul>(attributes, descs.src, descs.weights, *descs.bias, descs.dst);
  return describe<dnnl::matmul>(attributes, descs.src, descs.weights, descs.dst);
}

dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations) {
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(operations);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::string version_text() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + '.' + std::to_string(version->minor) + '.' +
         std::to_string(version->patch);
}

std::string instruction_set() {
  cpu_engine();
  return std::string("oneDNN ") + dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
}

}  // namespace plexaura::onednn

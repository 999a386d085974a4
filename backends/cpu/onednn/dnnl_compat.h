#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "core/tensor/layout.h"

// The one place that knows which oneDNN this is: 2.6 (Debian 12) describes a primitive by a struct of its
// own, 3.x hands everything to the primitive descriptor and hides what a memory descriptor holds.

namespace plexaura::onednn {

using dnnl::memory;

const dnnl::engine& cpu_engine();
dnnl::stream& cpu_stream();

memory::dims dims_of(const Shape& shape);

// Whether products are computed in this dtype: float32, bfloat16 or float16. For the last two the library may have no
// fast code on this processor.
bool multiplies(DType dtype);

// Leaves the layout to the library.
memory::desc any_layout(const memory::dims& dims, DType dtype);
memory::desc row_major(const memory::dims& dims, DType dtype);
memory::desc strided(const memory::dims& dims, const memory::dims& strides, DType dtype);

// Empty where the library has no name for the layout, or no type like this.
std::optional<memory::desc> desc_of(const Layout& layout, const TensorType& type);

// Empty for an opaque layout, one that a Layout cannot say.
std::optional<Layout> layout_of(const memory::desc& desc, const Shape& shape);

struct ConvolutionDescs {
  memory::desc src;
  memory::desc weights;
  std::optional<memory::desc> bias;
  memory::desc dst;
  memory::dims strides;
  memory::dims dilation;  // as the library counts it: 0 for none
  memory::dims padding;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

using ConvolutionForward = dnnl::convolution_forward::primitive_desc;
using ConvolutionBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvolutionBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

// Each throws dnnl::error where the library has no implementation. In those of backward src, weights, bias
// and dst stand for their gradients where the primitive has these.
ConvolutionForward describe_forward(const ConvolutionDescs& descs, dnnl::prop_kind kind,
                                    const dnnl::primitive_attr& attributes);
ConvolutionBackwardData describe_backward_data(const ConvolutionDescs& descs,
                                               const dnnl::primitive_attr& attributes,
                                               const ConvolutionForward& hint);
ConvolutionBackwardWeights describe_backward_weights(const ConvolutionDescs& descs,
                                                     const dnnl::primitive_attr& attributes,
                                                     const ConvolutionForward& hint);

struct MatMulDescs {
  memory::desc src;
  memory::desc weights;
  std::optional<memory::desc> bias;
  memory::desc dst;
};

dnnl::matmul::primitive_desc describe_matmul(const MatMulDescs& descs,
                                             const dnnl::primitive_attr& attributes);

// Scratch memory comes from the caller.
dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations);

}  // namespace plexaura::onednn

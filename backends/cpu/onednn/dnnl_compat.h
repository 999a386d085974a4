#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "core/tensor/layout.h"

// Adapters for the versions of oneDNN. No other file depends on the version. Version 2.6 (Debian 12)
// describes a primitive by a struct of its own. Version 3 passes everything to the primitive descriptor, and
// hides the contents of a memory descriptor.

namespace plexaura::onednn {

using dnnl::memory;

const dnnl::engine& cpu_engine();
dnnl::stream& cpu_stream();

memory::dims dims_of(const Shape& shape);

// True for the dtypes in which the library multiplies: float32, bfloat16 and float16. For the last two it may
// have no fast code on this processor.
bool multiplies(DType dtype);

// Returns the descriptor of a value whose layout the library chooses.
memory::desc any_layout(const memory::dims& dims, DType dtype);
memory::desc row_major(const memory::dims& dims, DType dtype);
memory::desc strided(const memory::dims& dims, const memory::dims& strides, DType dtype);

// Returns the descriptor of a value. Returns nothing if the library has no name for the layout, or does not
// have the type.
std::optional<memory::desc> desc_of(const Layout& layout, const TensorType& type);

// Returns the layout of a descriptor. Returns nothing if a Layout cannot express it: it is opaque, or has gaps.
std::optional<Layout> layout_of(const memory::desc& desc, const Shape& shape);

struct ConvolutionDescs {
  memory::desc src;
  memory::desc weights;
  std::optional<memory::desc> bias;
  memory::desc dst;
  memory::dims strides;
  memory::dims dilation;  // as the library counts: 0 means that neighbouring elements are read
  memory::dims padding;
  memory::dims padding_end;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

using ConvolutionForward = dnnl::convolution_forward::primitive_desc;
using ConvolutionBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvolutionBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

// Return primitive descriptors. Each throws dnnl::error if the library has no implementation. For the
// backward pass, src, weights, bias and dst describe the gradients of these values if the primitive reads or
// writes gradients.
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

// Returns attributes with these post-operations, which say that the caller provides scratch memory.
dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations);

}  // namespace plexaura::onednn

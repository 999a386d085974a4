#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/sources.h"
#ifdef PLEXAURA_HAS_ONEDNN
#include "backends/cpu/onednn/sources.h"
#endif

namespace plexaura {

std::vector<std::unique_ptr<const KernelSource>> cpu_kernel_sources() {
  std::vector<std::unique_ptr<const KernelSource>> sources;
#ifdef PLEXAURA_HAS_ONEDNN
  sources.push_back(onednn::make_convolution_source());
  sources.push_back(onednn::make_matmul_source());
  sources.push_back(onednn::make_reorder_source());
#endif
  sources.push_back(fast::make_winograd_source());
  sources.push_back(fast::make_winograd_weight_grad_source());
  sources.push_back(fast::make_batch_norm_source());
  sources.push_back(fast::make_small_matmul_source());
  sources.push_back(fast::make_block_matmul_source(DType::float64));
#ifndef PLEXAURA_HAS_ONEDNN
  sources.push_back(fast::make_block_matmul_source(DType::float32));
#endif
  sources.push_back(fast::make_double_convolution_source());
  sources.push_back(fast::make_pool_source(DType::float32));
  sources.push_back(fast::make_pool_source(DType::float64));
  sources.push_back(fast::make_pool3d_source());
  sources.push_back(fast::make_reduce_source());
  sources.push_back(fast::make_argmax_source());
  sources.push_back(fast::make_elementwise_source());
  sources.push_back(fast::make_class_source());
  sources.push_back(fast::make_softmax_source());
  sources.push_back(fast::make_attention_source(DType::float32));
  sources.push_back(fast::make_attention_source(DType::float64));
  sources.push_back(fast::make_row_norm_source());
  sources.push_back(fast::make_image_source());
  sources.push_back(fast::make_dropout_source());
  sources.push_back(fast::make_random_source());
  sources.push_back(fast::make_transfer_source());
  sources.push_back(fast::make_move_source());
  sources.push_back(fast::make_slope_source());
  sources.push_back(fast::make_row_chain_source());
  sources.push_back(fast::make_index_source());
  sources.push_back(fast::make_optimizer_source());
  sources.push_back(fast::make_chain_source());
#ifdef PLEXAURA_HAS_ONEDNN
  sources.push_back(fast::make_widened_source(onednn::make_convolution_source()));
  sources.push_back(fast::make_widened_source(onednn::make_matmul_source()));
#endif
  sources.push_back(fast::make_widened_source(fast::make_winograd_source()));
  sources.push_back(fast::make_widened_source(fast::make_winograd_weight_grad_source()));
  sources.push_back(fast::make_widened_source(fast::make_batch_norm_source()));
  sources.push_back(fast::make_widened_source(fast::make_small_matmul_source()));
  sources.push_back(fast::make_widened_source(fast::make_pool_source(DType::float32)));
  sources.push_back(fast::make_widened_source(fast::make_pool3d_source()));
  sources.push_back(fast::make_widened_source(fast::make_dropout_source()));
  sources.push_back(fast::make_widened_source(fast::make_softmax_source()));
  return sources;
}

std::string cpu_libraries() {
#ifdef PLEXAURA_HAS_ONEDNN
  return onednn::version_text();
#else
  return "no oneDNN";
#endif
}

std::string cpu_instructions() {
#ifdef PLEXAURA_HAS_ONEDNN
  return fast::instruction_set() + ", " + onednn::instruction_set();
#else
  return fast::instruction_set();
#endif
}

}  // namespace plexaura

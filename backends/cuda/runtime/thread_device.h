#pragma once

namespace plexaura::cuda::runtime {

// Makes kernels and libraries of this thread use the opened device. The functions of runtime.h do this
// themselves. Must be called before each launch; it takes a nanosecond if nothing has changed.
void use_device_in_this_thread();

}  // namespace plexaura::cuda::runtime

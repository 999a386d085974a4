#pragma once

namespace plexaura::cuda::runtime {

// Makes the opened device the one that kernels and libraries use in this thread; runtime.h's functions do it themselves. To
// be called before each launch: it costs a nanosecond where nothing has changed.
void use_device_in_this_thread();

}  // namespace plexaura::cuda::runtime

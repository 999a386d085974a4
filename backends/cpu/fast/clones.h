#pragma once

// A function of plain loops under PLEXAURA_CLONES is compiled once per generation of x86-64 processors, up to
// PLEXAURA_NEWEST_CLONE; the best one that runs here is chosen when the program is loaded. Under the thread sanitizer the
// choice would die at start, and with the address sanitizer g++ 12 gives clones wrong addresses of local arrays.
#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__) || defined(__SANITIZE_THREAD__) || \
    defined(__SANITIZE_ADDRESS__)
#undef PLEXAURA_NEWEST_CLONE
#define PLEXAURA_NEWEST_CLONE 0
#elif !defined(PLEXAURA_NEWEST_CLONE)
#define PLEXAURA_NEWEST_CLONE 4
#endif

#if PLEXAURA_NEWEST_CLONE == 4
#define PLEXAURA_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#elif PLEXAURA_NEWEST_CLONE == 3
#define PLEXAURA_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define PLEXAURA_CLONES
#endif

// For what the loops call: only what is inlined is compiled for the processor of the caller.
#define PLEXAURA_INLINE inline __attribute__((always_inline))

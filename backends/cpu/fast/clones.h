#pragma once

// PLEXAURA_CLONES compiles a function of plain loops once for each generation of x86-64 processors, up to
// PLEXAURA_NEWEST_CLONE. The best version for this processor is chosen when the program is loaded. There are
// no clones under sanitizers: with the thread sanitizer this choice crashes at start, and with the address
// sanitizer g++ 12 gives clones wrong addresses of local arrays.
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

// For functions that the loops call: only inlined code is compiled for the processor of the calling clone.
#define PLEXAURA_INLINE inline __attribute__((always_inline))

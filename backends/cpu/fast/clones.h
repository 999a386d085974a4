#pragma once

// PLEXAURA_CLONES compiles a function of plain loops once for each generation of x86-64 processors, up to
// PLEXAURA_NEWEST_CLONE. The best version for this processor is chosen when the program is loaded. There are
// no clones under sanitizers: with the thread sanitizer this choice crashes at start, and with the address
// sanitizer g++ 12 gives clones wrong addresses of local arrays.
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLEXAURA_HAS_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PLEXAURA_HAS_SANITIZER
#endif

#if !defined(__x86_64__) || !defined(__GNUC__) || defined(PLEXAURA_HAS_SANITIZER)
#undef PLEXAURA_NEWEST_CLONE
#define PLEXAURA_NEWEST_CLONE 0
#elif !defined(PLEXAURA_NEWEST_CLONE)
#define PLEXAURA_NEWEST_CLONE 4
#endif

// Names of the generations. clang 19 and 22 can choose a version by generation. clang 16 can by one set of
// instructions: avx512bw implies FMA, but avx2 does not.
#if defined(__clang__) && __clang_major__ < 19
#define PLEXAURA_CLONE_4 "avx512bw"
#define PLEXAURA_CLONE_3 "avx2"
#define PLEXAURA_CLONE_TARGET(name) name
#else
#define PLEXAURA_CLONE_4 "x86-64-v4"
#define PLEXAURA_CLONE_3 "x86-64-v3"
#define PLEXAURA_CLONE_TARGET(name) "arch=" name
#endif

#if PLEXAURA_NEWEST_CLONE == 4
#define PLEXAURA_CLONES                                                            \
  __attribute__((target_clones("default", PLEXAURA_CLONE_TARGET(PLEXAURA_CLONE_3), \
                               PLEXAURA_CLONE_TARGET(PLEXAURA_CLONE_4))))
#elif PLEXAURA_NEWEST_CLONE == 3
#define PLEXAURA_CLONES __attribute__((target_clones("default", PLEXAURA_CLONE_TARGET(PLEXAURA_CLONE_3))))
#else
#define PLEXAURA_CLONES
#endif

// Stands before the declaration of such a function in a header. clang 16 gives a function with clones another symbol,
// so callers have to know that it has them. With g++ and later versions of clang the symbol is the same.
#ifdef __clang__
#define PLEXAURA_CLONED PLEXAURA_CLONES
#else
#define PLEXAURA_CLONED
#endif

// For functions that the loops call: only inlined code is compiled for the processor of the calling clone.
#define PLEXAURA_INLINE inline __attribute__((always_inline))

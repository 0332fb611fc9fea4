// Loads and stores with cache hints: the hint is dropped.
#pragma once

#define INLINEBENCH_LOAD(NAME) \
  template <class T>           \
  inline T NAME(const T* address) { return *address; }
INLINEBENCH_LOAD(__ldg)
INLINEBENCH_LOAD(__ldca)
INLINEBENCH_LOAD(__ldcg)
INLINEBENCH_LOAD(__ldcs)
INLINEBENCH_LOAD(__ldcv)
INLINEBENCH_LOAD(__ldlu)
#undef INLINEBENCH_LOAD

namespace inlinebench {
template <class T>
struct Same { using type = T; };
}  // namespace inlinebench

#define INLINEBENCH_STORE(NAME) \
  template <class T>            \
  inline void NAME(T* address, typename inlinebench::Same<T>::type value) { *address = value; }
INLINEBENCH_STORE(__stwb)
INLINEBENCH_STORE(__stcg)
INLINEBENCH_STORE(__stcs)
INLINEBENCH_STORE(__stwt)
#undef INLINEBENCH_STORE

inline bool __isGlobal(const void*) { return true; }
inline void __builtin_assume(bool) {}
inline void __assume(bool) {}
template <class T>
inline void __prefetch_global_l1(const T*) {}
template <class T>
inline void __prefetch_global_l2(const T*) {}

#pragma once

namespace zklock {

/// What zklock must not do, for the fault suite to find out (tests/faults): always false in zklock,
/// true in a program built for that alone (cmake/Faults.cmake).
#ifdef ZKLOCK_MUTATION_NO_LEASE
inline constexpr bool kMutationNoLease = true;  ///< runs on when its lease has ended
#else
inline constexpr bool kMutationNoLease = false;
#endif
#ifdef ZKLOCK_MUTATION_RELEASE_FIRST
inline constexpr bool kMutationReleaseFirst = true;  ///< told to end, it releases, then waits
#else
inline constexpr bool kMutationReleaseFirst = false;
#endif

}  // namespace zklock

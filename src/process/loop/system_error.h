#pragma once

#include <cerrno>
#include <system_error>

namespace zklock::process {

/// Throws std::system_error with errno and the name of the operation that failed.
[[noreturn]] inline void ThrowErrno(const char* operation) {
  throw std::system_error(errno, std::generic_category(), operation);
}

/// Returns whether `error` means a lack of descriptors or memory. (From /proc, ENOENT and ESRCH
/// mean instead that a process is gone or hidden.)
[[nodiscard]] inline bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/// Returns `result`; if it is -1, throws std::system_error naming the operation.
template <typename Result>
Result Check(Result result, const char* operation) {
  if (result == Result{-1}) ThrowErrno(operation);
  return result;
}

}  // namespace zklock::process

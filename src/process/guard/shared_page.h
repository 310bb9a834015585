#pragma once

#include <sys/mman.h>

#include <new>

#include "process/loop/system_error.h"

namespace zklock::process {

/// Owns a T in memory that is shared with processes forked after it was created.
template <typename T>
class SharedPage {
 public:
  /// Throws std::system_error.
  SharedPage() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) ThrowErrno("mmap");
    page_ = new (memory) T;
  }
  ~SharedPage() { munmap(page_, sizeof(T)); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  T* operator->() const { return page_; }
  T& operator*() const { return *page_; }

 private:
  T* page_;
};

}  // namespace zklock::process

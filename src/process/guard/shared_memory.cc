#include "process/guard/shared_memory.h"

#include <cstring>

namespace zklock::process {

bool SharedEnvironment::Set(const std::vector<std::string>& environment) {
  std::size_t size = (environment.size() + 1) * sizeof(char*);
  for (const std::string& word : environment) size += word.size() + 1;
  if (size > kSize) return false;
  char** pointer = memory_.data();
  char* at = reinterpret_cast<char*>(pointer + environment.size() + 1);
  for (const std::string& word : environment) {
    std::memcpy(at, word.c_str(), word.size() + 1);
    *pointer++ = at;
    at += word.size() + 1;
  }
  *pointer = nullptr;
  return true;
}

}  // namespace zklock::process

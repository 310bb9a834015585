#pragma once

#include <zookeeper/zookeeper.h>

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zookeeper/session.h"

namespace zklock::zookeeper {

/// One request from its call to its answer's delivery, for Session alone. The library's callbacks
/// get a pointer to it.
struct Session::Pending {
  enum class State {
    kSent,       ///< the library has it, and gives it back to exactly one callback
    kThrottled,  ///< to be sent, again
    kAnswered,   ///< `deliver`, once all before it is answered
  };
  State state = State::kThrottled;
  Session* session = nullptr;
  TimePoint sent{};
  bool commits = false;        // answered with success it has gone through a quorum
  bool releases = false;       // a WriteAndDelete()
  bool is_write = false;       // not to be done twice
  std::string_view operation;  // of Session; a literal
  std::function<int(Pending&, zhandle_t*)> send;
  std::variant<Done<Reply>, Done<CreateReply>, Done<GetReply>, Done<ListReply>> done;
  std::function<void()> deliver;
  // The library reads and writes these until the answer to a multi comes.
  std::vector<std::string> paths;
  std::string data;
  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
};

}  // namespace zklock::zookeeper

#pragma once

#include <zookeeper/zookeeper.h>

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zookeeper/store.h"

namespace zklock::zookeeper {

class Session;

/// One request of a Session, from its call to the delivery of its answer. The client library's
/// callbacks get a pointer to it.
struct PendingRequest {
  enum class State {
    kSent,       ///< the library has it, and will give it to exactly one callback
    kThrottled,  ///< to be sent, for the first time or again
    kAnswered,   ///< `deliver` is to be called once all requests before it are answered
  };
  State state = State::kThrottled;
  Session* session = nullptr;
  TimePoint sent{};
  bool commits = false;        // success means that a quorum has committed it
  bool releases = false;       // a WriteAndDelete()
  bool is_write = false;       // not to be done twice
  std::string_view operation;  // the name of Session's function; a literal
  std::string fields;          // of the answer; see ReplyCheck::Expect()
  std::function<int(PendingRequest&, zhandle_t*)> send;
  std::variant<Done<Reply>, Done<CreateReply>, Done<SetReply>, Done<GetReply>, Done<ListReply>,
               Done<AclReply>>
      done;
  std::function<void()> deliver;
  // The library reads and writes these until the answer to a multi arrives.
  std::vector<std::string> paths;
  std::vector<std::string> data;
  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
  Stat stat{};
};

}  // namespace zklock::zookeeper

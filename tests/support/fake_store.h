#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/fake_clock.h"
#include "zookeeper/store.h"

namespace zklock::test {

class FakeStore;

/// The tree of znodes of one ensemble, in memory, for any number of FakeStores.
class FakeServers {
 public:
  struct Node {
    std::string data;
    std::int64_t owner = 0;  ///< the session; 0: not ephemeral
    std::int64_t czxid = 0;
    std::int64_t next_number = 0;
    std::int32_t version = 0;
    std::int64_t created_ms = 0;
    std::int64_t modified_ms = 0;
    bool readable = true;
    bool writable = true;       ///< children may be created
    bool full = false;          ///< its hard quota is used up: nothing may be created below it
    bool is_container = false;  ///< deleted by the servers when it is empty
  };

  FakeServers() { nodes["/"] = {}; }

  /// Creates a znode without a client. Returns its path, including the number if it is sequential.
  std::string Put(const std::string& path, std::int64_t owner, bool sequential = false,
                  const std::string& data = "");
  void Remove(const std::string& path);
  /// Writes to a znode that exists.
  void Write(const std::string& path, const std::string& data);
  /// Ends a session, and deletes its znodes.
  void EndSession(std::int64_t session);

  [[nodiscard]] std::vector<std::string> Children(const std::string& path) const;
  [[nodiscard]] bool Has(const std::string& path) const { return nodes.count(path) != 0; }

  [[nodiscard]] bool HasVersion(const std::string& path, std::int32_t version) const {
    return version == zookeeper::kAnyVersion || nodes.at(path).version == version;
  }

  std::map<std::string, Node> nodes;
  std::int64_t zxid = 100;
  std::int64_t next_session = 1000;
  std::int64_t now_ms = 0;  ///< the time by the servers' clock
  /// Servers that do not know a request reply with an error, and close the connection.
  bool knows_containers = true;
  bool knows_create2 = true;

 private:
  friend class FakeStore;
  struct Watcher {
    FakeStore* store;
    bool children;
  };
  void Fire(const std::string& path, zookeeper::Change change);
  [[nodiscard]] bool IsFull(const std::string& path) const;
  std::multimap<std::string, Watcher> watchers_;
};

/// A fault in one request.
enum class Fault {
  kNotDone,            ///< the connection is lost before the servers get it
  kReplyLost,          ///< it is executed, and the connection is lost before the answer
  kExpiredNotDone,     ///< like kNotDone, and the session expires before the next connection
  kExpiredReplyLost,   ///< like kReplyLost, and the session expires before the next connection
  kAnsweredAndClosed,  ///< it is executed and answered, and the server closes the connection
};

/// The faults after which a client cannot know whether its request was executed.
inline constexpr std::array kLosses = {Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                                       Fault::kExpiredReplyLost};

/// The faults and actions that a test has planned for requests. Each plan is used once.
template <typename T>
class Plans {
 public:
  /// The beginning of the request's line in FakeStore::log(), or its number.
  using Request = std::variant<std::string, std::size_t>;

  void Plan(Request request, T what) {
    std::erase_if(plans_, [&](const auto& plan) { return plan.first == request; });
    plans_.emplace_back(std::move(request), std::move(what));
  }
  /// Removes and returns what is planned for the request with this number and this line.
  std::optional<T> Take(std::size_t number, const std::string& line) {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) {
      const auto* const beginning = std::get_if<std::string>(&plan.first);
      return beginning == nullptr ? std::get<std::size_t>(plan.first) == number
                                  : line.starts_with(*beginning);
    });
    if (found == plans_.end()) return std::nullopt;
    std::optional<T> what = std::move(found->second);
    plans_.erase(found);
    return what;
  }

  /// Returns the beginning of a request that was planned for, but not sent; empty if there is none.
  [[nodiscard]] std::string Unused() const {
    for (const auto& [request, what] : plans_) {
      if (const auto* const beginning = std::get_if<std::string>(&request)) return *beginning;
    }
    return "";
  }
  void Clear() { plans_.clear(); }

 private:
  std::vector<std::pair<Request, T>> plans_;
};

/// A Store over FakeServers that the test steps by hand: nothing is answered before Step().
///
/// A test can inject a fault at a request, or run something before it. It identifies the request by
/// the beginning of its line in log(), such as "create /l/host-", which means the next such request
/// that the servers get; if there is none, the test fails unless it calls DropPlans(). A test that
/// tries every request in turn passes the request's number, from 0.
class FakeStore final : public zookeeper::Store {
 public:
  FakeStore(FakeServers& servers, FakeClock& clock, Duration timeout = std::chrono::seconds(30));
  ~FakeStore() override;

  /// Sets the timeout that servers grant from the next Connect() on.
  void SetGranted(Duration timeout) { timeout_ = timeout; }
  /// Makes a server accept the session, or create one if there is none.
  void Connect();
  /// Breaks the connection; outstanding requests were not executed.
  void Disconnect();
  /// Drops the watches that have been set so far: they never fire.
  void LoseWatches();
  /// Ends the session at the servers; the client learns of it with its next Connect().
  void Expire();

  /// Executes and answers the oldest request, or delivers the oldest event. Returns false if there
  /// was neither.
  bool Step();
  /// Calls Step(), and connects again after each fault, until there is nothing left to do.
  void Run();

  void PlaceFault(const std::string& request, Fault fault) { faults_.Plan(request, fault); }
  void PlaceFault(std::size_t request, Fault fault) { faults_.Plan(request, fault); }
  /// Makes the servers answer this request with `error` instead of executing it.
  void Refuse(const std::string& request, zookeeper::Error error) {
    refusals_.Plan(request, error);
  }
  void Refuse(std::size_t request, zookeeper::Error error) { refusals_.Plan(request, error); }
  /// Runs `what` just before the servers execute this request.
  void Before(const std::string& request, std::function<void()> what) {
    before_.Plan(request, std::move(what));
  }
  void Before(std::size_t request, std::function<void()> what) {
    before_.Plan(request, std::move(what));
  }
  /// Drops the plans for requests that were not sent.
  void DropPlans();
  [[nodiscard]] std::size_t requests_sent() const { return log_.size(); }
  /// Returns the requests in order: "create /l/x", "list /l", …
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  /// Returns the requests from number `begin` on.
  [[nodiscard]] std::vector<std::string> SentSince(std::size_t begin) const;
  /// Returns the number of requests that begin with `beginning`.
  [[nodiscard]] std::size_t CountSent(const std::string& beginning) const;
  [[nodiscard]] bool server_given_up() const { return given_up_; }

  // Store
  void SetListener(zookeeper::StoreListener* listener) override { listener_ = listener; }
  [[nodiscard]] bool IsConnected() const override { return connected_; }
  [[nodiscard]] std::int64_t session_id() const override { return session_; }
  [[nodiscard]] const protocol::Lease& lease() const override { return lease_; }
  void Create(const std::string& path, const std::string& data, zookeeper::NodeKind kind,
              zookeeper::Done<zookeeper::CreateReply> done) override;
  void CreateAll(const std::vector<zookeeper::NewContender>& contenders, const std::string& scratch,
                 zookeeper::Done<zookeeper::CreateAllReply> done) override;
  void Get(const std::string& path, zookeeper::Watch watch,
           zookeeper::Done<zookeeper::GetReply> done) override;
  void List(const std::string& path, zookeeper::Watch watch,
            zookeeper::Done<zookeeper::ListReply> done) override;
  void Exists(const std::string& path, zookeeper::Watch watch,
              zookeeper::Done<zookeeper::Reply> done) override;
  void Delete(const std::string& path, std::int32_t version,
              zookeeper::Done<zookeeper::Reply> done) override;
  void Set(const std::string& path, const std::string& data, std::int32_t version,
           zookeeper::Done<zookeeper::SetReply> done) override;
  void WriteAndDelete(const std::vector<zookeeper::DataWrite>& writes,
                      const std::vector<std::string>& gone, std::int32_t gone_version,
                      zookeeper::Done<zookeeper::Reply> done) override;
  void MakePersistent(const std::vector<zookeeper::Conversion>& conversions,
                      const std::vector<std::string>& checked,
                      const std::vector<std::string>& deleted,
                      zookeeper::Done<zookeeper::Reply> done) override;
  void Sync(const std::string& path, zookeeper::Done<zookeeper::Reply> done) override;
  void Check(const std::vector<std::string>& paths,
             zookeeper::Done<zookeeper::Reply> done) override;
  void GetAcl(const std::string& path, zookeeper::Done<zookeeper::AclReply> done) override;
  void CheckCreate(const std::string& path, const std::string& data, bool and_delete,
                   zookeeper::Done<zookeeper::Reply> done) override;
  void Stamp(const std::string& path, zookeeper::Done<zookeeper::SetReply> done) override;
  void SetHolding(TimePoint stop, TimePoint /*end*/) override { stop_time = stop; }
  void GiveUpServer(zookeeper::Error /*refusal*/) override { given_up_ = true; }
  void Renew() override;

  TimePoint stop_time{};
  bool may_delete = true;          ///< this client has DELETE permission on every parent
  std::string may_delete_below{};  ///< if not `may_delete`: the only parent with that permission

 private:
  friend class FakeServers;
  [[nodiscard]] bool MayDelete(const std::string& path) const;
  struct Request {
    std::size_t number;
    TimePoint sent;
    bool commits;
    std::function<zookeeper::Error()> act;  ///< executes the request, and fills in the reply
    std::function<void(zookeeper::Error, TimePoint)> answer;
  };

  [[nodiscard]] zookeeper::Error Refusal(const std::vector<zookeeper::DataWrite>& writes) const;
  [[nodiscard]] zookeeper::Error RefusalToCreate(const std::string& parent) const;
  template <typename R>
  void Send(const std::string& what, bool commits, zookeeper::Done<R> done,
            std::function<zookeeper::Error(R&)> act);
  void LoseConnection();
  bool SufferFault(Fault fault);

  FakeServers& servers_;
  FakeClock& clock_;
  Duration timeout_;
  protocol::Lease lease_;
  zookeeper::StoreListener* listener_ = nullptr;
  bool connected_ = false;
  bool expired_ = false;  ///< on the servers; the client does not know yet
  bool given_up_ = false;
  bool awaits_renewal_ = false;
  std::int64_t session_ = 0;
  std::deque<Request> requests_;
  std::deque<std::pair<std::string, zookeeper::Change>> events_;
  std::vector<std::string> log_;
  Plans<Fault> faults_;
  Plans<zookeeper::Error> refusals_;
  Plans<std::function<void()>> before_;
};

/// One client with its own servers. A test derives its bench from this, and adds the object under
/// test.
struct FakeBench {
  FakeServers servers;
  FakeClock clock;
  FakeStore store{servers, clock};
};

}  // namespace zklock::test

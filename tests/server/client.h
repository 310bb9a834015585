#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "process/loop/event_loop.h"
#include "support/loop.h"
#include "zookeeper/session.h"

namespace zklock::test {

inline std::vector<zookeeper::Endpoint> EndpointsOf(const std::vector<std::string>& servers) {
  std::vector<zookeeper::Endpoint> endpoints;
  for (const std::string& server : servers) endpoints.push_back({server, server});
  return endpoints;
}

/// A real session with its own loop. Records all events that it gets as the session's listener.
class Client : public zookeeper::StoreListener {
 public:
  Client(const std::vector<std::string>& servers, Duration timeout, zookeeper::Access access = {})
      : session_(EndpointsOf(servers), timeout, clock_, std::move(access)) {
    session_.SetListener(this);
    loop_.Add(session_);
  }
  ~Client() override { loop_.Remove(session_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] zookeeper::Session& session() { return session_; }
  [[nodiscard]] process::EventLoop& loop() { return loop_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  void RunOnce() { loop_.RunOnce(); }
  void RunUntil(const std::function<bool()>& holds) { test::RunUntil(loop_, holds); }
  void RunFor(Duration span) {
    Moment end(BootClock::now() + span);
    loop_.Add(end);
    while (!end.has_come()) loop_.RunOnce();
    loop_.Remove(end);
  }
  void Connect() {
    RunUntil([&] { return session_.IsConnected() && !events.empty(); });
  }

  /// Closes the session, and waits for the servers' answer.
  void Close() {
    session_.BeginClose();
    RunUntil([&] { return session_.IsClosed(); });
  }

  /// "connected, fresh", "connected", "disconnected", "expired", "refused", "watch PATH".
  std::vector<std::string> events;

  void OnConnected(bool fresh) override {
    events.push_back(fresh ? "connected, fresh" : "connected");
  }
  void OnDisconnected() override { events.push_back("disconnected"); }
  void OnExpired() override { events.push_back("expired"); }
  void OnRefused(zookeeper::Error /*why*/) override { events.push_back("refused"); }
  void OnWatch(const std::string& path, zookeeper::Change /*change*/) override {
    events.push_back("watch " + path);
  }

 private:
  const SystemClock clock_;
  process::EventLoop loop_;
  zookeeper::Session session_;
};

/// A Client that has connected.
class ConnectedClient final : public Client {
 public:
  ConnectedClient(const std::vector<std::string>& servers, Duration timeout)
      : Client(servers, timeout) {
    Connect();
  }
};

}  // namespace zklock::test

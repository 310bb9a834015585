#include "support/request_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::test {
namespace {

using zookeeper::Done;
using zookeeper::NodeKind;
using zookeeper::Session;
using zookeeper::Watch;

struct ScriptClient final : zookeeper::StoreListener {
  void OnConnected(bool /*fresh*/) override {}
  void OnDisconnected() override { events.emplace_back("disconnected"); }
  void OnExpired() override { events.emplace_back("expired"); }
  void OnRefused(zookeeper::Error /*why*/) override { events.emplace_back("refused"); }
  void OnWatch(const std::string& path, zookeeper::Change change) override {
    constexpr const char* kChanges[] = {"created", "deleted", "data", "children"};
    events.push_back(fmt::format("{} {}", kChanges[static_cast<int>(change)], path.substr(root)));
  }

  std::size_t root = 0;  // the length of its path
  Session* session = nullptr;
  std::int64_t id = 0;
  std::vector<std::string> events;
};

class Script {
 public:
  Script(const std::string& root, ScriptHost& host) : root_(root), host_(host) {}

  void Run(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    std::string verb;
    words >> name >> verb;
    arguments_.clear();
    for (std::string word; words >> word;) arguments_.push_back(word == "''" ? "" : word);
    ScriptClient& client = clients_[name];
    const std::string result = Execute(client, verb);
    output_.push_back(fmt::format("{} -> {}", line, result));
    for (auto& [other, one] : clients_) {
      zookeeper::Session* const session = one.session;
      if (session == nullptr || !session->IsConnected()) continue;
      // Watches that have fired arrive before the answer to a read after a sync.
      Ask<zookeeper::Reply>([&](auto done) { session->Sync("/", done); });
      Ask<zookeeper::GetReply>([&](auto done) { session->Get("/", Watch::kNo, done); });
    }
    for (auto& [other, one] : clients_) {
      for (const std::string& event : std::exchange(one.events, {})) {
        output_.push_back(fmt::format("  {} sees: {}", other, event));
      }
    }
  }

  std::vector<std::string> Take() {
    std::vector<std::int64_t> sorted;
    for (const auto& [line, zxid] : zxids_) sorted.push_back(zxid);
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const auto& [line, zxid] : zxids_) {
      const auto rank = std::lower_bound(sorted.begin(), sorted.end(), zxid) - sorted.begin();
      output_.push_back(fmt::format("{}: transaction {}", line, rank));
    }
    return std::move(output_);
  }

 private:
  template <typename R>
  R Ask(const std::function<void(Done<R>)>& ask) {
    std::optional<R> answer;
    ask([&answer](const R& reply) { answer = reply; });
    host_.Await([&] { return answer.has_value(); });
    return *answer;
  }
  static std::string Error(const zookeeper::Reply& reply) {
    return reply.error == zookeeper::Error::kNone
               ? "done"
               : fmt::format("error {}", static_cast<int>(reply.error));
  }
  std::string Describe(const std::string& path, const zookeeper::NodeStat& stat) {
    std::string owner = stat.ephemeral_owner == 0 ? "nobody" : "somebody";
    for (const auto& [name, client] : clients_) {
      if (stat.ephemeral_owner != 0 && client.id == stat.ephemeral_owner) owner = name;
    }
    if (stat.created_zxid != 0) zxids_.emplace_back(path.substr(root_.size()), stat.created_zxid);
    return fmt::format(" version {} owner {}{}", stat.version, owner,
                       stat.modified_ms < stat.created_ms ? " modified before created" : "");
  }
  [[nodiscard]] std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const std::string& one : arguments_) paths.push_back(root_ + one);
    return paths;
  }
  [[nodiscard]] std::int32_t Number(std::size_t index) const {
    return std::stoi(arguments_.at(index));
  }

  std::string Execute(ScriptClient& client, const std::string& verb) {
    if (verb == "open") {  // SECONDS
      client.root = root_.size();
      client.session = &host_.Open(std::chrono::seconds(Number(0)));
      client.session->SetListener(&client);
      host_.Await([&] { return client.session->IsConnected(); });
      client.id = client.session->session_id();
      if (clients_.size() == 1) {
        Ask<zookeeper::CreateReply>(
            [&](auto done) { client.session->Create(root_, "", NodeKind::kPersistent, done); });
      }
      return "open";
    }
    Session& session = *client.session;
    if (verb == "create-all") {  // SCRATCH DATA PREFIX...
      std::vector<zookeeper::NewContender> all;
      for (std::size_t i = 2; i < arguments_.size(); ++i) {
        const std::string one = root_ + arguments_[i];
        const std::string prefix(protocol::BaseOf(one));
        all.push_back({protocol::ParentOf(one), prefix, arguments_.at(1)});
      }
      const auto reply = Ask<zookeeper::CreateAllReply>(
          [&](auto done) { session.CreateAll(all, arguments_.at(0), done); });
      if (reply.error != zookeeper::Error::kNone) {
        return fmt::format("{} at {}{}", Error(reply), reply.failed,
                           reply.may_not_delete ? ", at its delete" : "");
      }
      std::string created;
      for (const std::string& one : reply.paths) created += one.substr(root_.size()) + ' ';
      return created + "with" + Describe(reply.paths.front(), reply.stat);
    }
    if (verb == "delete-all") {  // PATH...
      return Error(Ask<zookeeper::Reply>(
          [&](auto done) { session.WriteAndDelete({}, Paths(), zookeeper::kAnyVersion, done); }));
    }
    if (verb == "close") {
      session.BeginClose();
      host_.Await([&] { return session.IsClosed(); });
      client.session = nullptr;
      return "closed";
    }
    if (verb == "stop") {  // until CLIENT sees something
      host_.SetServed(session, false);
      const ScriptClient& other = clients_.at(arguments_.at(0));
      host_.Await([&] { return !other.events.empty(); });
      host_.SetServed(session, true);
      host_.Await([&] { return !client.events.empty() && client.events.back() == "expired"; });
      client.session = nullptr;
      return "stopped";
    }
    const std::string path = root_ + arguments_.at(0);
    const bool watches = verb.starts_with("watch-");
    const Watch watch = watches ? Watch::kYes : Watch::kNo;
    const std::string what = watches ? verb.substr(6) : verb;
    if (what == "create") {  // PATH KIND DATA
      constexpr std::pair<const char*, NodeKind> kKinds[] = {
          {"persistent", NodeKind::kPersistent},
          {"container", NodeKind::kContainer},
          {"ephemeral", NodeKind::kEphemeral},
          {"sequential", NodeKind::kEphemeralSequential}};
      const auto* const kind =
          std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const auto& one) { return one.first == arguments_.at(1); });
      const auto reply = Ask<zookeeper::CreateReply>(
          [&](auto done) { session.Create(path, arguments_.at(2), kind->second, done); });
      if (reply.error != zookeeper::Error::kNone) return Error(reply);
      return reply.path.substr(root_.size()) + Describe(reply.path, reply.stat);
    }
    if (what == "get") {
      const auto reply =
          Ask<zookeeper::GetReply>([&](auto done) { session.Get(path, watch, done); });
      if (reply.error != zookeeper::Error::kNone) return Error(reply);
      return "'" + reply.data + "'" + Describe(path, reply.stat);
    }
    if (what == "list") {
      const auto reply =
          Ask<zookeeper::ListReply>([&](auto done) { session.List(path, watch, done); });
      if (reply.error != zookeeper::Error::kNone) return Error(reply);
      std::vector<std::string> names;
      for (const std::string_view child : reply.children) names.emplace_back(child);
      std::sort(names.begin(), names.end());
      return fmt::format("[{}]", fmt::join(names, " "));
    }
    if (what == "exists") {
      return Error(Ask<zookeeper::Reply>([&](auto done) { session.Exists(path, watch, done); }));
    }
    if (what == "set") {  // PATH DATA VERSION
      const auto reply = Ask<zookeeper::SetReply>(
          [&](auto done) { session.Set(path, arguments_.at(1), Number(2), done); });
      if (reply.error != zookeeper::Error::kNone) return Error(reply);
      return "done" + Describe(path, reply.stat);
    }
    if (what == "delete") {  // PATH VERSION
      return Error(
          Ask<zookeeper::Reply>([&](auto done) { session.Delete(path, Number(1), done); }));
    }
    if (what == "release") {  // PATH DATA VERSION GONE VERSION
      return Error(Ask<zookeeper::Reply>([&](auto done) {
        session.WriteAndDelete({{path, arguments_.at(1), Number(2)}}, {root_ + arguments_.at(3)},
                               Number(4), done);
      }));
    }
    if (what == "convert") {  // PATH VERSION DATA
      return Error(Ask<zookeeper::Reply>([&](auto done) {
        session.MakePersistent({{path, Number(1), arguments_.at(2)}}, {}, {}, done);
      }));
    }
    if (what == "check") {  // PATH...
      return Error(Ask<zookeeper::Reply>([&](auto done) { session.Check(Paths(), done); }));
    }
    if (what == "stamp") {
      const auto reply = Ask<zookeeper::SetReply>([&](auto done) { session.Stamp(path, done); });
      if (reply.error != zookeeper::Error::kNone) return Error(reply);
      return "done" + Describe(path, reply.stat);
    }
    throw std::runtime_error("unknown verb " + verb);
  }

  const std::string root_;
  ScriptHost& host_;
  std::map<std::string, ScriptClient> clients_;
  std::vector<std::string> arguments_;
  std::vector<std::string> output_;
  std::vector<std::pair<std::string, std::int64_t>> zxids_;
};

}  // namespace

std::vector<std::string> RunRequestScript(const std::string& script, const std::string& root,
                                          ScriptHost& host) {
  std::ifstream file(script);
  if (!file) throw std::runtime_error("cannot read " + script);
  Script run(root, host);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') run.Run(line);
  }
  return run.Take();
}

}  // namespace zklock::test

#include "cli/views/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

/// Identifies a process on any host. Pids and start times are unique only within a boot.
using Process = std::tuple<std::string, std::string, std::int64_t, std::uint64_t>;

std::optional<Process> ProcessOf(const lock::ContenderData& data) {
  if (!data.host || !data.boot_id || !data.pid || !data.start_time) return std::nullopt;
  return Process{*data.host, *data.boot_id, *data.pid, *data.start_time};
}

/// Returns whether a node with edges for this reason may continue before all their targets do.
bool IsChoice(WaitEdge::Reason reason) {
  return reason == WaitEdge::Reason::kPermit || reason == WaitEdge::Reason::kAny;
}

/// Finds the nodes that can never continue. Repeatedly removes each node that waits for no
/// remaining node, each that waits for any of several nodes once one of them is removed, and each
/// that waits for permits once the remaining nodes hold few enough. The others are stuck.
std::vector<bool> FindStuck(const WaitGraph& graph) {
  struct Needs {
    std::size_t all = 0;  ///< remaining nodes that must all continue before it
    std::size_t any = 0;  ///< how many LOCKs or permits it waits for, of which it needs only some
    std::size_t any_left = 0;
    std::optional<std::size_t> most_left;  ///< it can continue once `any_left` is at most this
    [[nodiscard]] bool IsStuck() const {
      return all > 0 || (most_left ? any_left > *most_left : any > 0 && any_left == any);
    }
  };
  std::vector<Needs> needs(graph.nodes);
  std::vector<std::vector<const WaitEdge*>> to(graph.nodes);
  for (const WaitEdge& edge : graph.edges) {
    to[edge.to].push_back(&edge);
    Needs& of = needs[edge.from];
    if (IsChoice(edge.reason)) {
      of.any_left = of.any += edge.permits;
    } else {
      ++of.all;
    }
  }
  for (const auto& [node, most] : graph.most_held) needs[node].most_left = most;
  std::vector<bool> stuck(graph.nodes, true);
  std::vector<std::size_t> free_nodes;
  const auto check = [&](std::size_t node) {
    if (!stuck[node] || needs[node].IsStuck()) return;
    stuck[node] = false;
    free_nodes.push_back(node);
  };
  for (std::size_t node = 0; node < graph.nodes; ++node) check(node);
  while (!free_nodes.empty()) {
    const std::size_t node = free_nodes.back();
    free_nodes.pop_back();
    for (const WaitEdge* edge : to[node]) {
      Needs& of = needs[edge->from];
      if (IsChoice(edge->reason)) {
        of.any_left -= edge->permits;
      } else {
        --of.all;
      }
      check(edge->from);
    }
  }
  return stuck;
}

std::vector<std::vector<std::size_t>> Successors(const WaitGraph& graph,
                                                 const std::vector<bool>& stuck) {
  std::vector<std::vector<std::size_t>> successors(graph.nodes);
  for (const WaitEdge& edge : graph.edges) {
    if (stuck[edge.from] && stuck[edge.to]) successors[edge.from].push_back(edge.to);
  }
  return successors;
}

using NodeOf = std::vector<std::optional<std::size_t>>;

/// Adds a node for each run that takes any one of several LOCKs. Returns, for each contender, the
/// node that has to continue before its process can: the contender itself, or its run. None for a
/// contender that is left over because its run already holds another LOCK.
NodeOf AddAnyRuns(WaitGraph& graph, const std::vector<const ContenderView*>& contenders) {
  struct Run {
    std::vector<std::size_t> waiters;
    std::set<std::string> locks;  ///< those in which its contenders were found
    std::size_t wanted = 0;       ///< how many LOCKs it names
    bool holds = false;
  };
  std::map<std::int64_t, Run> runs;  // by session
  NodeOf node_of;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const ContenderView& contender = *contenders[i];
    node_of.emplace_back(i);
    if (contender.data.any.empty() || !contender.session) continue;
    Run& run = runs[*contender.session];
    run.locks.insert(protocol::ParentOf(contender.path));
    run.wanted = std::max(run.wanted, contender.data.any.size() + 1);
    if (contender.Holds()) {
      run.holds = true;
    } else {
      run.waiters.push_back(i);
    }
  }
  for (const auto& [session, run] : runs) {
    const auto node = run.holds ? std::nullopt : std::optional(graph.nodes++);
    for (const std::size_t waiter : run.waiters) {
      node_of[waiter] = node;
      if (node) graph.edges.push_back({*node, waiter, WaitEdge::Reason::kAny});
    }
    if (node && run.locks.size() < run.wanted) {
      graph.edges.push_back({*node, graph.not_found, WaitEdge::Reason::kAny});
    }
  }
  return node_of;
}

}  // namespace

WaitGraph FindWaits(const std::vector<const ContenderView*>& contenders) {
  std::unordered_map<std::string_view, std::size_t> by_path;
  std::map<Process, std::vector<std::size_t>> holders_of;
  std::unordered_map<std::string, std::vector<std::size_t>>
      permits_in;  // by the path of their parent
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    // A LOCK may have been surveyed twice; its permits count once.
    const bool is_new = by_path.emplace(contenders[i]->path, i).second;
    const auto process = ProcessOf(contenders[i]->data);
    // A reservation outlives the process that made it, and waits for nothing.
    if (process && contenders[i]->state == ContenderState::kHeld) {
      holders_of[*process].push_back(i);
    }
    if (is_new && contenders[i]->for_permit && contenders[i]->Holds()) {
      permits_in[protocol::ParentOf(contenders[i]->path)].push_back(i);
    }
  }
  WaitGraph graph{.nodes = contenders.size() + 1, .not_found = contenders.size()};
  const NodeOf node_of = AddAnyRuns(graph, contenders);
  std::set<std::pair<std::size_t, std::size_t>> to_runs;
  const auto add = [&](std::size_t from, std::size_t to, WaitEdge::Reason reason) {
    const auto node = node_of[to];
    // Edges to several contenders of a run would all lead to the run: only one is needed.
    if (!node || (*node != to && !to_runs.emplace(from, *node).second)) return;
    graph.edges.push_back({from, *node, reason});
  };
  const auto add_nested = [&](const std::string& from_path, std::size_t to) {
    const auto from = by_path.find(from_path);
    if (from == by_path.end() || from->second == to) return;
    if (contenders[from->second]->state != ContenderState::kHeld) return;
    add(from->second, to, WaitEdge::Reason::kNested);
  };
  const auto waited_for = [&](const lock::Predecessor& one) -> std::vector<std::size_t> {
    if (one.any_holder) return permits_in[protocol::ParentOf(one.path)];
    const auto predecessor = by_path.find(one.path);
    if (predecessor == by_path.end()) return {};
    return {predecessor->second};
  };
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const ContenderView& contender = *contenders[i];
    if (contender.waits_for) {
      // The edge leads to the predecessor itself, not to its run: even if that run takes another
      // LOCK, this contender still waits for those before the predecessor.
      const bool for_permits = contender.waits_for->any_holder;
      for (const std::size_t one : waited_for(*contender.waits_for)) {
        const auto reason = for_permits ? WaitEdge::Reason::kPermit : WaitEdge::Reason::kQueue;
        graph.edges.push_back({i, one, reason, contenders[one]->take});
      }
      if (for_permits && contender.permit_limit) {
        const std::size_t limit = *contender.permit_limit;
        graph.most_held[i] = limit - std::min(contender.take, limit);
      }
      // The LOCKs of a set are acquired one by one: those already held stay held during this wait.
      const auto process = ProcessOf(contender.data);
      const auto own = process ? holders_of.find(*process) : holders_of.end();
      if (own != holders_of.end()) {
        for (const std::size_t holder : own->second) add(holder, i, WaitEdge::Reason::kSet);
      }
    }
    for (const std::string& outer : contender.data.under) add_nested(outer, i);
  }
  return graph;
}

std::vector<std::size_t> FindCycles(const WaitGraph& graph) {
  // Tarjan's strongly connected components, without recursion because a queue may be long.
  constexpr std::size_t kUnseen = 0;
  const std::vector<bool> stuck = FindStuck(graph);
  const auto successors = Successors(graph, stuck);
  std::vector<std::size_t> number(graph.nodes, kUnseen);
  std::vector<std::size_t> lowest(graph.nodes);
  std::vector<bool> is_open(graph.nodes);
  std::vector<std::size_t> open;
  std::vector<std::size_t> cycle(graph.nodes);
  std::size_t count = 0;
  std::size_t cycles = 0;
  struct Visit {
    std::size_t node;
    std::size_t next;
  };
  for (std::size_t root = 0; root < graph.nodes; ++root) {
    if (number[root] != kUnseen) continue;
    std::vector<Visit> visits{{root, 0}};
    while (!visits.empty()) {
      const std::size_t node = visits.back().node;
      if (visits.back().next == 0 && number[node] == kUnseen) {
        number[node] = lowest[node] = ++count;
        open.push_back(node);
        is_open[node] = true;
      }
      if (visits.back().next < successors[node].size()) {
        const std::size_t to = successors[node][visits.back().next++];
        if (number[to] == kUnseen) {
          visits.push_back({to, 0});
        } else if (is_open[to]) {
          lowest[node] = std::min(lowest[node], number[to]);
        }
        continue;
      }
      visits.pop_back();
      if (!visits.empty()) {
        lowest[visits.back().node] = std::min(lowest[visits.back().node], lowest[node]);
      }
      if (lowest[node] != number[node]) continue;
      const auto begin = std::find(open.begin(), open.end(), node);
      if (open.end() - begin > 1) ++cycles;
      for (auto member = begin; member != open.end(); ++member) {
        is_open[*member] = false;
        if (open.end() - begin > 1) cycle[*member] = cycles;
      }
      open.erase(begin, open.end());
    }
  }
  // A run that can continue in one queue is not deadlocked in another.
  for (const WaitEdge& edge : graph.edges) {
    if (edge.reason == WaitEdge::Reason::kAny && !stuck[edge.from]) cycle[edge.to] = 0;
  }
  return cycle;
}

std::string Deadlock::Text() const {
  constexpr std::size_t kMostHolders = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(holders.size(), kMostHolders); ++i) {
    text += fmt::format("{}{} holds {}", i == 0 ? "" : ", ", holders[i].who, holders[i].lock);
  }
  if (holders.size() > kMostHolders) {
    text += fmt::format(", and {} more", holders.size() - kMostHolders);
  }
  if (holders.size() < 2) return text + " and waits for itself";
  return text + "; each waits for " + (holders.size() == 2 ? "the other" : "another");
}

void DeadlockSearch::Add(const ContenderView& contender) {
  if (contender.state == ContenderState::kNoContender) return;
  const lock::ContenderData& data = contender.data;
  ContenderView kept{.name = contender.Holds() ? contender.name : "",
                     .path = contender.path,
                     .state = contender.state,
                     .program = contender.program,
                     .for_permit = contender.for_permit,
                     .permit_limit = contender.permit_limit,
                     .take = contender.take,
                     .session = contender.session,
                     .waits_for = contender.waits_for};
  kept.data.host = data.host;
  kept.data.pid = data.pid;
  kept.data.boot_id = data.boot_id;
  kept.data.start_time = data.start_time;
  kept.data.under = data.under;
  kept.data.any = data.any;
  contenders_.push_back(std::move(kept));
  lock_of_.push_back(locks_.size() - 1);
}

std::vector<Deadlock> DeadlockSearch::Find() const {
  std::vector<const ContenderView*> contenders;
  for (const ContenderView& contender : contenders_) contenders.push_back(&contender);
  const std::vector<std::size_t> cycles = FindCycles(FindWaits(contenders));
  std::vector<Deadlock> deadlocks;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (cycles[i] == 0) continue;
    deadlocks.resize(std::max(deadlocks.size(), cycles[i]));
    Deadlock& deadlock = deadlocks[cycles[i] - 1];
    const std::string& lock = locks_[lock_of_[i]];
    ++deadlock.contenders[lock];
    if (!contenders_[i].Holds()) continue;
    std::string who = HostAndPid(contenders_[i]);
    if (who.empty()) who = fmt::format("({})", ProgramName(contenders_[i]));
    const Deadlock::Holder holder{.who = who, .lock = lock};
    auto& known = deadlock.holders;
    // A LOCK may have been surveyed twice.
    if (std::find(known.begin(), known.end(), holder) == known.end()) known.push_back(holder);
  }
  return deadlocks;
}

}  // namespace zklock::cli

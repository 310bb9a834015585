#include "cli/views/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

/// Identifies a process on any host. Pids and start times are unique per boot only.
using Process = std::tuple<std::string, std::string, std::int64_t, std::uint64_t>;

std::optional<Process> ProcessOf(const lock::ContenderData& data) {
  if (!data.host || !data.boot_id || !data.pid || !data.start_time) return std::nullopt;
  return Process{*data.host, *data.boot_id, *data.pid, *data.start_time};
}

/// Finds the contenders that can never continue. Repeatedly removes those that wait for no
/// remaining contender, or for any of several of which one is removed; the rest is stuck.
std::vector<bool> FindStuck(std::size_t count, const std::vector<WaitEdge>& edges) {
  struct Needs {
    std::size_t all = 0;  ///< how many remain of those that it must wait for
    std::size_t any = 0;  ///< the number of those of which one will do
    std::size_t any_left = 0;
    [[nodiscard]] bool IsStuck() const { return all > 0 || (any > 0 && any_left == any); }
  };
  std::vector<Needs> needs(count);
  std::vector<std::vector<const WaitEdge*>> to(count);
  for (const WaitEdge& edge : edges) {
    to[edge.to].push_back(&edge);
    Needs& of = needs[edge.from];
    if (edge.reason == WaitEdge::Reason::kPermit) {
      of.any_left = ++of.any;
    } else {
      ++of.all;
    }
  }
  std::vector<bool> stuck(count, true);
  std::vector<std::size_t> free_nodes;
  const auto check = [&](std::size_t node) {
    if (!stuck[node] || needs[node].IsStuck()) return;
    stuck[node] = false;
    free_nodes.push_back(node);
  };
  for (std::size_t node = 0; node < count; ++node) check(node);
  while (!free_nodes.empty()) {
    const std::size_t node = free_nodes.back();
    free_nodes.pop_back();
    for (const WaitEdge* edge : to[node]) {
      Needs& of = needs[edge->from];
      --(edge->reason == WaitEdge::Reason::kPermit ? of.any_left : of.all);
      check(edge->from);
    }
  }
  return stuck;
}

std::vector<std::vector<std::size_t>> Successors(std::size_t count,
                                                 const std::vector<WaitEdge>& edges) {
  const std::vector<bool> stuck = FindStuck(count, edges);
  std::vector<std::vector<std::size_t>> successors(count);
  for (const WaitEdge& edge : edges) {
    if (stuck[edge.from] && stuck[edge.to]) successors[edge.from].push_back(edge.to);
  }
  return successors;
}

}  // namespace

std::vector<WaitEdge> FindWaits(const std::vector<const ContenderView*>& contenders) {
  std::unordered_map<std::string_view, std::size_t> by_path;
  std::map<Process, std::vector<std::size_t>> holders_of;
  std::unordered_map<std::string, std::vector<std::size_t>>
      permits_in;  // by the path of their parent
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    by_path.emplace(contenders[i]->path, i);
    const auto process = ProcessOf(contenders[i]->data);
    // A reservation outlives the process that made it, and waits for nothing.
    if (process && contenders[i]->state == ContenderState::kHeld) {
      holders_of[*process].push_back(i);
    }
    if (contenders[i]->for_permit && contenders[i]->Holds()) {
      permits_in[protocol::ParentOf(contenders[i]->path)].push_back(i);
    }
  }
  std::vector<WaitEdge> edges;
  const auto add_nested = [&](const std::string& from_path, std::size_t to) {
    const auto from = by_path.find(from_path);
    if (from == by_path.end() || from->second == to) return;
    if (contenders[from->second]->state != ContenderState::kHeld) return;
    edges.push_back({from->second, to, WaitEdge::Reason::kNested});
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
      for (const std::size_t one : waited_for(*contender.waits_for)) {
        const bool has_choice = contender.waits_for->any_holder;
        edges.push_back(
            {i, one, has_choice ? WaitEdge::Reason::kPermit : WaitEdge::Reason::kQueue});
      }
      // The LOCKs of a set are acquired one by one: those already held wait with this one.
      const auto process = ProcessOf(contender.data);
      const auto own = process ? holders_of.find(*process) : holders_of.end();
      if (own != holders_of.end()) {
        for (const std::size_t holder : own->second) {
          edges.push_back({holder, i, WaitEdge::Reason::kSet});
        }
      }
    }
    for (const std::string& outer : contender.data.under) add_nested(outer, i);
  }
  return edges;
}

std::vector<std::size_t> FindCycles(std::size_t contenders, const std::vector<WaitEdge>& edges) {
  // Tarjan's strongly connected components, without recursion because a queue may be long.
  constexpr std::size_t kUnseen = 0;
  const auto successors = Successors(contenders, edges);
  std::vector<std::size_t> number(contenders, kUnseen);
  std::vector<std::size_t> lowest(contenders);
  std::vector<bool> is_open(contenders);
  std::vector<std::size_t> open;
  std::vector<std::size_t> cycle(contenders);
  std::size_t count = 0;
  std::size_t cycles = 0;
  struct Visit {
    std::size_t node;
    std::size_t next;
  };
  for (std::size_t root = 0; root < contenders; ++root) {
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
                     .waits_for = contender.waits_for};
  kept.data.host = data.host;
  kept.data.pid = data.pid;
  kept.data.boot_id = data.boot_id;
  kept.data.start_time = data.start_time;
  kept.data.under = data.under;
  contenders_.push_back(std::move(kept));
  lock_of_.push_back(locks_.size() - 1);
}

std::vector<Deadlock> DeadlockSearch::Find() const {
  std::vector<const ContenderView*> contenders;
  for (const ContenderView& contender : contenders_) contenders.push_back(&contender);
  const std::vector<std::size_t> cycles = FindCycles(contenders.size(), FindWaits(contenders));
  std::vector<Deadlock> deadlocks;
  for (std::size_t i = 0; i < cycles.size(); ++i) {
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

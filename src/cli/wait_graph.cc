#include "cli/wait_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

/// One process, wherever it is: pids and start times are per boot.
using Process = std::tuple<std::string, std::string, std::int64_t, std::uint64_t>;

std::optional<Process> ProcessOf(const lock::ContenderData& data) {
  if (!data.host || !data.boot_id || !data.pid || !data.start_time) return std::nullopt;
  return Process{*data.host, *data.boot_id, *data.pid, *data.start_time};
}

/// Who can never go on: all that are left when those have been taken out, again and again, that
/// wait for nobody who is left, or for one of several of whom one is taken out.
std::vector<bool> FindStuck(std::size_t count, const std::vector<WaitEdge>& edges) {
  struct Needs {
    std::size_t all = 0;  ///< of those it waits for without a choice, how many are left
    std::size_t any = 0;  ///< of those of whom one will do, how many there are
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
  std::vector<std::size_t> goes_on;
  const auto look_at = [&](std::size_t node) {
    if (!stuck[node] || needs[node].IsStuck()) return;
    stuck[node] = false;
    goes_on.push_back(node);
  };
  for (std::size_t node = 0; node < count; ++node) look_at(node);
  while (!goes_on.empty()) {
    const std::size_t node = goes_on.back();
    goes_on.pop_back();
    for (const WaitEdge* edge : to[node]) {
      Needs& of = needs[edge->from];
      --(edge->reason == WaitEdge::Reason::kPermit ? of.any_left : of.all);
      look_at(edge->from);
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
    if (process && contenders[i]->state == ContenderState::kHeld) {
      holders_of[*process].push_back(i);
    }
    if (contenders[i]->for_permit && contenders[i]->state == ContenderState::kHeld) {
      permits_in[protocol::ParentOf(contenders[i]->path)].push_back(i);
    }
  }
  std::vector<WaitEdge> edges;
  const auto add = [&](const std::string& from_path, std::size_t to) {
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
      // Of a set the LOCKs are taken one after the other: what it has waits with it.
      const auto process = ProcessOf(contender.data);
      const auto own = process ? holders_of.find(*process) : holders_of.end();
      if (own != holders_of.end()) {
        for (const std::size_t holder : own->second) {
          edges.push_back({holder, i, WaitEdge::Reason::kSet});
        }
      }
    }
    for (const std::string& outer : contender.data.under) add(outer, i);
  }
  return edges;
}

std::vector<std::size_t> FindCircles(std::size_t contenders, const std::vector<WaitEdge>& edges) {
  // Tarjan's strongly connected components, with a stack of its own: a queue may be long.
  constexpr std::size_t kUnseen = 0;
  const auto successors = Successors(contenders, edges);
  std::vector<std::size_t> number(contenders, kUnseen);
  std::vector<std::size_t> lowest(contenders);
  std::vector<bool> is_open(contenders);
  std::vector<std::size_t> open;
  std::vector<std::size_t> circle(contenders);
  std::size_t count = 0;
  std::size_t circles = 0;
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
      if (open.end() - begin > 1) ++circles;
      for (auto member = begin; member != open.end(); ++member) {
        is_open[*member] = false;
        if (open.end() - begin > 1) circle[*member] = circles;
      }
      open.erase(begin, open.end());
    }
  }
  return circle;
}

}  // namespace zklock::cli

#include "cli/views/queue_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/text/printable.h"
#include "cli/views/wait_graph.h"

namespace zklock::cli {
namespace {

/// Quotes untrusted text for dot(1), escaping quotes and backslashes.
std::string Quoted(std::string_view foreign, std::size_t columns = std::string_view::npos) {
  std::string text = "\"";
  for (const char c : Printable(foreign, columns)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// `take`: how many permits the blocked contender wants.
std::string_view ReasonText(WaitEdge::Reason reason, std::size_t take) {
  switch (reason) {
    case WaitEdge::Reason::kQueue:
      return "waits for";
    case WaitEdge::Reason::kPermit:
      return take == 1 ? "waits for one of" : "waits for one or more of";
    case WaitEdge::Reason::kNested:
      return "runs";
    case WaitEdge::Reason::kSet:
      return "also wants";
    case WaitEdge::Reason::kAny:
      return "or";
  }
  return "";
}

std::string_view StyleText(WaitEdge::Reason reason) {
  switch (reason) {
    case WaitEdge::Reason::kQueue:
    case WaitEdge::Reason::kPermit:
      break;
    case WaitEdge::Reason::kNested:
    case WaitEdge::Reason::kSet:
      return ", style=dashed";
    case WaitEdge::Reason::kAny:
      return ", style=dotted";
  }
  return "";
}

/// Returns two lines: `first`, and the process.
std::string Label(const std::string& first, const ContenderView& contender) {
  const std::string who = HostAndPid(contender);
  std::string what = contender.data.command.value_or("");
  if (what.empty()) what = fmt::format("({})", ProgramName(contender));
  if (!who.empty()) what = who + " " + what;
  if (contender.reserved) what = ReservationText(*contender.reserved, contender.overdue);
  std::string label = Quoted(first);
  label.pop_back();
  return label + "\\n" + Quoted(what, kWidestForeign).substr(1);
}

}  // namespace

QueueDot::QueueDot(TextOutput out) : out_(std::move(out)) {}

void QueueDot::OnLock(const lock::LockSurvey& lock) {
  describer_.emplace(lock);
  locks_.push_back(lock.path);
}

void QueueDot::OnEntry(const lock::QueueEntry& entry) {
  ContenderView contender = describer_->Describe(entry);
  if (contender.state == ContenderState::kNoContender) return;
  nodes_.push_back({locks_.size() - 1, std::move(contender)});
}

void QueueDot::OnLockEnd(const lock::LockSurvey& lock) {
  if (lock.IsSemaphore()) locks_.back() += ": " + PermitsInUse(lock);
}

void QueueDot::OnEnd() {
  std::vector<const ContenderView*> contenders;
  for (const Node& node : nodes_) contenders.push_back(&node.contender);
  const WaitGraph graph = FindWaits(contenders);
  const std::vector<std::size_t> cycles = FindCycles(graph);
  const std::size_t deadlocks =
      cycles.empty() ? 0 : *std::max_element(cycles.begin(), cycles.end());

  out_("digraph zklock {\n  rankdir=LR;\n  node [shape=box];\n");
  if (deadlocks > 0) {
    out_(fmt::format("  label=\"{} deadlock{}, in red\";\n  fontcolor=red;\n", deadlocks,
                     deadlocks == 1 ? "" : "s"));
  }
  std::size_t node = 0;
  for (std::size_t i = 0; i < locks_.size(); ++i) {
    std::string text = fmt::format(
        "  subgraph cluster_{} {{\n    label={};\n    fontcolor=black;\n", i, Quoted(locks_[i]));
    for (; node < nodes_.size() && nodes_[node].lock == i; ++node) {
      const ContenderView& contender = nodes_[node].contender;
      const std::string place = fmt::format("{} {} {}", contender.position.value_or(0),
                                            StateName(contender.state), ModeText(contender));
      text += fmt::format("    n{} [label={}{}{}];\n", node, Label(place, contender),
                          contender.Holds() ? ", style=bold" : "",
                          cycles[node] != 0 ? ", color=red" : "");
    }
    out_(text + "  }\n");
  }
  std::size_t last_run = graph.not_found;
  for (const WaitEdge& edge : graph.edges) {
    const bool is_any = edge.reason == WaitEdge::Reason::kAny;
    if (is_any && edge.from > last_run) {
      last_run = edge.from;
      const ContenderView& contender = nodes_[edge.to].contender;
      const std::string any = fmt::format("any of {}", contender.data.any.size() + 1);
      out_(fmt::format("  n{} [label={}, shape=ellipse{}];\n", edge.from, Label(any, contender),
                       cycles[edge.from] != 0 ? ", color=red" : ""));
    }
    if (is_any && edge.to == graph.not_found) {
      out_(fmt::format("  n{} [label=\"not shown\", shape=plaintext];\n", edge.to));
    }
    const bool in_cycle = cycles[edge.from] != 0 && cycles[edge.from] == cycles[edge.to];
    const std::size_t take = edge.from < nodes_.size() ? nodes_[edge.from].contender.take : 1;
    out_(fmt::format("  n{} -> n{} [label=\"{}\"{}{}];\n", edge.from, edge.to,
                     ReasonText(edge.reason, take), StyleText(edge.reason),
                     in_cycle ? ", color=red, penwidth=2" : ""));
  }
  out_("}\n");
}

}  // namespace zklock::cli

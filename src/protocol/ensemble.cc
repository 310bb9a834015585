#include "protocol/ensemble.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "protocol/lease.h"

namespace zklock::protocol {
namespace {

using namespace std::chrono_literals;
using Kind = Finding::Kind;
using Places = std::vector<std::size_t>;

// With a larger offset, times that zklock compares with the servers' clock (--min-interval, --for,
// the ages that inspect shows) are wrong by more than anyone would expect.
constexpr Duration kClockTolerance = 1s;

/// Returns the indices of the servers that `is_one` accepts.
template <typename F>
Places Which(const EnsembleFacts& facts, F is_one) {
  Places places;
  for (std::size_t i = 0; i < facts.servers.size(); ++i) {
    if (is_one(facts.servers[i])) places.push_back(i);
  }
  return places;
}

bool HasNoQuorum(const ServerFacts& server) {
  return server.role == ServerRole::kReadOnly || server.role == ServerRole::kNotServing;
}

void FindUnfit(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  const auto has_other_address = [&](const ServerFacts& server) {
    return std::any_of(facts.servers.begin(), facts.servers.end(), [&](const ServerFacts& other) {
      return other.reached && other.name == server.name;
    });
  };
  const auto add = [&](Kind kind, const Places& places) {
    for (const std::size_t place : places) findings.push_back({.kind = kind, .servers = {place}});
  };
  add(Kind::kOldVersion, Which(facts, [](const auto& server) { return server.is_old; }));
  add(Kind::kNoQuorum, Which(facts, [](const auto& server) { return HasNoQuorum(server); }));
  add(Kind::kUnreached, Which(facts, [&](const auto& server) {
        return !server.reached && !HasNoQuorum(server) && !has_other_address(server);
      }));
  add(Kind::kUnreachedAddress, Which(facts, [&](const auto& server) {
        return !server.reached && !HasNoQuorum(server) && has_other_address(server);
      }));
}

/// Groups the entries that belong to one server: those with the same number in the same ensemble.
/// Returns only groups of several entries.
std::vector<Places> SameServers(const EnsembleFacts& facts) {
  std::map<int, Places> by_id;
  for (const std::size_t place : Which(facts, [](const ServerFacts& server) {
         return server.reached && server.id && server.same_ensemble == true;
       })) {
    by_id[*facts.servers[place].id].push_back(place);
  }
  std::vector<Places> groups;
  for (auto& [id, places] : by_id) {
    if (places.size() > 1) groups.push_back(std::move(places));
  }
  return groups;
}

void FindEnsembles(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  Places others =
      Which(facts, [](const ServerFacts& server) { return server.same_ensemble == false; });
  if (!others.empty()) {
    findings.push_back({.kind = Kind::kOtherEnsemble, .servers = std::move(others)});
  }
  if (facts.members) {
    const Members& members = *facts.members;
    Places strangers = Which(facts, [&](const ServerFacts& server) {
      return server.reached && server.id && server.same_ensemble == true &&
             !members.voters.contains(*server.id) && !members.observers.contains(*server.id);
    });
    if (!strangers.empty()) {
      findings.push_back({.kind = Kind::kNotMember, .servers = std::move(strangers)});
    }
  }
  for (const Places& places : SameServers(facts)) {
    // A host with both IPv4 and IPv6 has two addresses under one name.
    const bool one_name = std::all_of(places.begin(), places.end(), [&](std::size_t place) {
      return facts.servers[place].name == facts.servers[places.front()].name;
    });
    if (!one_name) findings.push_back({.kind = Kind::kSameServer, .servers = places});
  }
  Places unknown = Which(facts, [](const ServerFacts& server) {
    return server.reached && !server.same_ensemble.has_value();
  });
  if (!unknown.empty()) {
    findings.push_back({.kind = Kind::kNotCompared, .servers = std::move(unknown)});
  }
}

void FindGrants(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  Places local = Which(facts, [](const ServerFacts& server) { return server.is_local; });
  if (!local.empty()) {
    findings.push_back({.kind = Kind::kLocalSessions, .servers = std::move(local)});
  }
  std::vector<Duration> grants;
  for (const ServerFacts& server : facts.servers) {
    if (server.granted) grants.push_back(*server.granted);
  }
  if (grants.empty()) return;
  const Duration least = *std::min_element(grants.begin(), grants.end());
  const Duration most = *std::max_element(grants.begin(), grants.end());
  const Places granting =
      Which(facts, [&](const ServerFacts& server) { return server.granted == least; });
  if (least != most) {
    findings.push_back(
        {.kind = Kind::kDifferentGrants, .servers = granting, .least = least, .most = most});
  }
  if (least < kLeastSessionTimeout) {
    findings.push_back({.kind = Kind::kUselessGrant, .servers = granting, .least = least});
  } else if (least < kComfortableSessionTimeout) {
    findings.push_back({.kind = Kind::kShortGrant, .servers = granting, .least = least});
  }
  if (most < facts.asked) {
    findings.push_back({.kind = Kind::kGrantBelowAsked, .least = most, .most = facts.asked});
  }
}

void FindSlow(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  const auto timeout = ShortestGrant(facts);
  if (!timeout) return;
  // A heartbeat is sent only once the previous one is answered. If answers take longer than the
  // period, the remaining lease becomes shorter than the protocol assumes.
  const Duration period = HeartbeatPeriod(*timeout);
  for (std::size_t i = 0; i < facts.servers.size(); ++i) {
    const auto& commit = facts.servers[i].commit;
    if (!commit || commit->worst <= period / 2) continue;
    findings.push_back({.kind = commit->worst > period ? Kind::kTooSlow : Kind::kSlow,
                        .servers = {i},
                        .least = period,
                        .most = commit->worst});
  }
}

void FindNumber(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  // Counts a server with several entries only once.
  std::size_t listed = facts.servers.size();
  for (const Places& places : SameServers(facts)) listed -= places.size() - 1;
  const Places standalone = Which(
      facts, [](const ServerFacts& server) { return server.role == ServerRole::kStandalone; });
  if (!facts.members) {
    if (listed == 1 && standalone.size() == 1) {
      findings.push_back({.kind = Kind::kSingleServer, .servers = standalone});
    } else if (listed % 2 == 0 && standalone.empty()) {
      findings.push_back({.kind = Kind::kEvenList, .count = listed});
    }
    return;
  }
  const Members& members = *facts.members;
  const std::size_t count = members.voters.size() + members.observers.size();
  if (!members.weighted && members.voters.size() % 2 == 0) {
    findings.push_back({.kind = Kind::kEvenMembers, .count = members.voters.size()});
  }
  if (!members.weighted && members.voters.size() == 1) {
    findings.push_back({.kind = Kind::kSingleServer});
  }
  if (listed < count) {
    findings.push_back({.kind = Kind::kPartialList, .count = count, .least_count = listed});
  }
}

void FindClock(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < facts.servers.size(); ++i) {
    const auto& clock = facts.servers[i].clock;
    if (!clock) continue;
    if (std::chrono::abs(clock->offset) - clock->uncertainty > kClockTolerance) {
      // Reports a single finding: every server of an ensemble shows the leader's clock.
      if (!best || clock->uncertainty < facts.servers[*best].clock->uncertainty) best = i;
    }
  }
  if (best) {
    findings.push_back(
        {.kind = Kind::kClockOff, .servers = {*best}, .most = facts.servers[*best].clock->offset});
  }
  const auto may_stamp = [](const auto& server) { return server.reached && !server.is_local; };
  const bool reached = !Which(facts, may_stamp).empty();
  // If the chroot is missing, that is why no clock is known, not a missing permission.
  if (reached && !facts.lacks_chroot &&
      Which(facts, [](const auto& server) { return server.clock.has_value(); }).empty()) {
    findings.push_back({.kind = Kind::kClockUnknown});
  }
}

void FindConnections(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < facts.servers.size(); ++i) {
    const ServerFacts& server = facts.servers[i];
    const std::uint64_t limit = server.connection_limit.value_or(0);
    if (limit == 0 || !server.connections) continue;
    // Nine tenths of the limit, computed without overflow.
    if (*server.connections >= limit - limit / 10) {
      findings.push_back({.kind = Kind::kFewConnectionsLeft,
                          .servers = {i},
                          .count = static_cast<std::size_t>(limit),
                          .least_count = static_cast<std::size_t>(*server.connections)});
    }
  }
}

void FindWords(const EnsembleFacts& facts, std::vector<Finding>& findings) {
  const auto any = [](const ServerFacts& server, WordEnd end) {
    return server.srvr == end || server.conf == end || server.cons == end;
  };
  Places closed =
      Which(facts, [&](const ServerFacts& server) { return any(server, WordEnd::kClosed); });
  Places unusable = Which(facts, [&](const ServerFacts& server) {
    return server.reached && any(server, WordEnd::kUnusable);
  });
  if (!closed.empty()) {
    findings.push_back({.kind = Kind::kWordsClosed, .servers = std::move(closed)});
  }
  if (!unusable.empty()) {
    findings.push_back({.kind = Kind::kWordsUnusable, .servers = std::move(unusable)});
  }
}

}  // namespace

std::optional<Spread> SpreadOf(std::vector<Duration> times) {
  if (times.empty()) return std::nullopt;
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  const Duration median =
      times.size() % 2 == 1 ? times[half] : times[half - 1] + (times[half] - times[half - 1]) / 2;
  return Spread{median, times.back(), times.size()};
}

ClockOffset OffsetOf(std::chrono::milliseconds stamp, Duration received, Duration round_trip) {
  // The clock showed `stamp`, or up to a millisecond more, at an unknown moment during the round
  // trip.
  constexpr Duration kHalfUnit = 500us;
  return {.offset = stamp + kHalfUnit - (received - round_trip / 2),
          .uncertainty = round_trip / 2 + kHalfUnit};
}

bool IsOldVersion(std::string_view version) {
  int major = 0;
  int minor = 0;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return std::pair(major, minor) < std::pair(3, 5);
}

bool ShouldBeFixed(Finding::Kind kind) { return kind <= Kind::kNoChroot; }

std::vector<Finding> Judge(const EnsembleFacts& facts) {
  std::vector<Finding> findings;
  FindEnsembles(facts, findings);
  FindUnfit(facts, findings);
  FindGrants(facts, findings);
  FindSlow(facts, findings);
  FindNumber(facts, findings);
  FindClock(facts, findings);
  FindConnections(facts, findings);
  FindWords(facts, findings);
  if (facts.lacks_chroot) findings.push_back({.kind = Kind::kNoChroot});
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& one, const Finding& other) {
    return ShouldBeFixed(one.kind) && !ShouldBeFixed(other.kind);
  });
  return findings;
}

std::optional<bool> IsSameEnsemble(bool known, std::optional<Duration> since_alive,
                                   Duration timeout) {
  if (known) return true;
  // No server knows a session that has ended.
  if (!since_alive || *since_alive > timeout / 2) return std::nullopt;
  return false;
}

std::optional<Duration> ShortestGrant(const EnsembleFacts& facts) {
  std::optional<Duration> shortest;
  for (const ServerFacts& server : facts.servers) {
    if (server.granted) shortest = std::min(shortest.value_or(*server.granted), *server.granted);
  }
  return shortest;
}

TimeWithoutServers HowLongWithoutServers(Duration timeout, Duration kill_after,
                                         Duration round_trip) {
  // First send enough heartbeats for the lease to reach its steady state. Then let the servers fail
  // just after an answer, or just before the next one.
  constexpr int kHeartbeats = 16;
  const TimePoint began = TimePoint() + 1h;
  Lease lease(timeout);
  lease.ConnectAccepted(began, timeout);
  const Duration period = std::max(HeartbeatPeriod(timeout), round_trip);
  TimePoint answered = began;
  for (int i = 1; i <= kHeartbeats; ++i) {
    const TimePoint sent = began + i * period;
    answered = sent + round_trip;
    lease.Committed(sent, answered);
  }
  const Duration grace = GraceFor(kill_after, timeout);
  const auto from = [](TimePoint failure, TimePoint until) {
    return std::max(until - failure, Duration::zero());
  };
  const TimePoint stop = StopTime(lease.End().value_or(answered), grace);
  // A commit right after the connect proves as much as possible.
  Lease fresh(timeout);
  fresh.ConnectAccepted(began, timeout);
  fresh.Committed(began, began);
  const TimePoint end = *fresh.End();
  return {.least_to_stop = from(answered + period, stop),
          .usual_to_stop = from(answered, stop),
          .most_to_stop = from(began, StopTime(end, grace)),
          .most_to_end = from(began, end)};
}

}  // namespace zklock::protocol

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulation/life.h"
#include "support/request_script.h"

// simulate: runs one life for each seed; see scripts/simulate.

namespace zklock::simulation {
namespace {

struct Arguments {
  std::vector<std::uint64_t> seeds;
  std::uint64_t first = 1;
  std::uint64_t count = 0;  ///< 0: no limit
  double minutes = 0;
  std::string profile = "all";
  bool trace = false;
  bool progress = false;
  std::string answers;  ///< a script of requests
  int servers = 1;      ///< for its answers
};

/// Runs the sessions of a script, all in one simulated process.
class SimulatedHost final : public test::ScriptHost {
 public:
  SimulatedHost(Process& process, int servers) : process_(process), servers_(servers) {}
  zookeeper::Session& Open(Duration timeout) override {
    const std::vector<zookeeper::Endpoint> endpoint{EndpointOf(next_++ % servers_)};
    process_.Add(sessions_.emplace_back(endpoint, timeout, clock_));
    return sessions_.back();
  }
  void SetServed(zookeeper::Session& session, bool is_served) override {
    is_served ? process_.Add(session) : process_.Remove(session);
  }
  void Await(const std::function<bool()>& holds) override {
    const TimePoint deadline = clock_.Now() + std::chrono::seconds(60);
    while (!holds() && clock_.Now() < deadline) process_.RunOnce(deadline);
    if (!holds()) throw Violation("no answer");
  }

 private:
  Process& process_;
  const int servers_;
  int next_ = 0;
  const VirtualClock clock_;
  std::deque<zookeeper::Session> sessions_;
};

/// Prints the answers to a script of requests, to be compared with those of real servers.
int Answer(const Arguments& arguments) {
  constexpr int kTickMs = 500;
  World its_world(1, arguments.trace);
  Network network;
  for (Place from = 0; from < kMostPlaces; ++from) {
    for (Place to = 0; to < kMostPlaces; ++to) network.SetDelay(from, to, kMillisecond);
  }
  Ensemble servers(network, arguments.servers, kTickMs);
  ensemble = &servers;
  Process process("script", arguments.servers, [&](Process& self) {
    SimulatedHost host(self, arguments.servers);
    for (const auto& line : test::RunRequestScript(arguments.answers, "/root", host)) {
      fmt::print("{}\n", line);
    }
  });
  try {
    while (!process.is_over()) its_world.Step(kForever);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
  }
  CloseAllSockets();
  return 0;
}

// The interval at which a long run prints its figures, in case it is interrupted.
constexpr double kReportInterval = 300;  // s

struct Figures {
  std::map<std::string, std::int64_t> counts;
  std::int64_t seeds = 0;
  std::uint64_t events = 0;
  Time virtual_time = 0;
  double seconds = 0;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns false if a promise was broken.
bool Live(std::uint64_t seed, const Arguments& arguments, Figures& figures, std::uint64_t& hash) {
  std::string problem;
  try {
    Life life(seed, arguments.profile, arguments.trace);
    const Time began = life.world.now();
    try {
      life.Go();
    } catch (const Violation& violation) {
      problem = violation.what();
    } catch (const std::exception& error) {
      problem = std::string("defect of the simulation or of src/: ") + error.what();
    }
    hash = life.world.hash;
    ++figures.seeds;
    figures.events += life.world.events;
    figures.virtual_time += life.world.now() - began;
    for (const auto& [kind, count] : life.world.counts) figures.counts[kind] += count;
    if (!problem.empty()) {
      fmt::print("seed {}: after {:.3f} s: {}\n", seed, static_cast<double>(life.world.now()) / 1e9,
                 problem);
    }
  } catch (const std::exception& error) {
    problem = error.what();
    fmt::print("seed {}: {}\n", seed, problem);
  }
  return problem.empty();
}

void PrintTotals(const Figures& figures) {
  const double hours = static_cast<double>(figures.virtual_time) / 3.6e12;
  fmt::print(
      "{} seeds, {:.1f} virtual hours, {} events in {:.1f} s: {:.2f} hours and {:.0f} events a "
      "second\n",
      figures.seeds, hours, figures.events, figures.seconds, hours / figures.seconds,
      static_cast<double>(figures.events) / figures.seconds);
}

void Print(const Figures& figures) {
  PrintTotals(figures);
  for (const auto& [kind, count] : figures.counts) fmt::print("{:>10}  {}\n", count, kind);
}

int Main(const Arguments& arguments) {
  Figures figures;
  const double began = Now();
  double next_report = kReportInterval;
  bool is_fine = true;
  std::uint64_t hash = 0;
  const auto live = [&](std::uint64_t seed) {
    if (!Live(seed, arguments, figures, hash)) is_fine = false;
    if (!is_fine) {
      fmt::print("replay: scripts/simulate --profile {} --seed {} --trace\n", arguments.profile,
                 seed);
    }
    figures.seconds = Now() - began;
    if (arguments.progress) {
      fmt::print(stderr, "\r{} seeds, {:.0f} s ", figures.seeds, figures.seconds);
    } else if (figures.seconds > next_report) {
      fmt::print("up to seed {}: ", seed);
      PrintTotals(figures);
      next_report = figures.seconds + kReportInterval;
    }
    std::fflush(stdout);
    return is_fine;
  };
  for (const std::uint64_t seed : arguments.seeds) {
    if (!live(seed)) break;
    fmt::print("seed {}: hash {:016x}\n", seed, hash);
  }
  if (arguments.seeds.empty()) {
    for (std::uint64_t i = 0; is_fine; ++i) {
      if (arguments.count > 0 && i >= arguments.count) break;
      if (arguments.minutes > 0 && Now() - began >= arguments.minutes * 60) break;
      live(arguments.first + i);
    }
  }
  figures.seconds = Now() - began;
  if (arguments.progress) fmt::print(stderr, "\r");
  Print(figures);
  return is_fine ? 0 : 1;
}

}  // namespace
}  // namespace zklock::simulation

int main(int argc, char** argv) {
  zklock::simulation::Arguments arguments;
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 0); };
  const std::map<std::string, bool*> flags = {{"--trace", &arguments.trace},
                                              {"--progress", &arguments.progress}};
  const std::map<std::string, std::function<void(const char*)>> options = {
      {"--seed", [&](const char* value) { arguments.seeds.push_back(number(value)); }},
      {"--seeds", [&](const char* value) { arguments.count = number(value); }},
      {"--first", [&](const char* value) { arguments.first = number(value); }},
      {"--minutes", [&](const char* value) { arguments.minutes = std::atof(value); }},
      {"--profile", [&](const char* value) { arguments.profile = value; }},
      {"--answers", [&](const char* value) { arguments.answers = value; }},
      {"--servers", [&](const char* value) { arguments.servers = std::atoi(value); }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (flags.contains(name)) {
      *flags.at(name) = true;
    } else if (options.contains(name) && i + 1 < argc) {
      options.at(name)(argv[++i]);
    } else {
      fmt::print(stderr, "simulate: unknown argument, or no value: '{}'\n", name);
      return 64;
    }
  }
  if (!arguments.answers.empty()) return zklock::simulation::Answer(arguments);
  const auto profiles = zklock::simulation::ProfileNames();
  if (arguments.profile == "list") {
    for (const std::string& name : profiles) fmt::print("{}\n", name);
    return 0;
  }
  if (std::find(profiles.begin(), profiles.end(), arguments.profile) == profiles.end()) {
    fmt::print(stderr, "simulate: unknown profile '{}'\n", arguments.profile);
    return 64;
  }
  return zklock::simulation::Main(arguments);
}

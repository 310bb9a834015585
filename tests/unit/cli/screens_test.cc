// The screens of `zklock inspect` as users see them are stored in tests/screens, so that a change
// shows in a diff. To update them: ZKLOCK_RENEW_SCREENS=1 scripts/test -- -R 'screen'

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/servers/servers_view.h"
#include "cli/text/printable.h"
#include "cli/views/history_text.h"
#include "cli/views/queue_text.h"
#include "support/source.h"
#include "unit/cli/fake_servers.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

/// A quarter past two.
constexpr std::int64_t kNow = test::kNoon + 135LL * 60 * 1000;

void CheckScreen(const std::string& name, const std::string& text) {
  const std::string path = test::SourcePath("tests/screens/") + name;
  CAPTURE(path);
  if (getenv("ZKLOCK_RENEW_SCREENS") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  REQUIRE(file);
  CHECK(text == std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string Render(const std::vector<lock::LockSurvey>& locks, const ViewStyle& style) {
  std::string text;
  QueueText view("/jobs", style, [&text](const std::string& more) { text += more; });
  test::Report(view, locks);
  return text;
}

/// Returns four nights of a backup: it runs; host db2 vanished; it failed; it succeeded.
HistoryView History() {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  const auto run = [](int night, const std::string& host, seconds waited) {
    return RunView{.run = {.began = protocol::ServerTime(test::kNoon) + hours(24 * night),
                           .waited = waited,
                           .host = host,
                           .user = "backup",
                           .label = "nightly to \x1b[2Jtape",
                           .token = 4294967342 + 40 * night}};
  };
  RunView running = run(3, "db1", seconds(0));
  running.state = RunState::kRunning;
  RunView lost = run(2, "db2", seconds(3));
  lost.state = RunState::kLost;
  RunView failed = run(1, "db3.example.org", minutes(12) + seconds(41));
  failed.run.duration = seconds(2);
  failed.run.status = 1;
  RunView succeeded = run(0, "db1", seconds(0));
  succeeded.run.duration = hours(1) + minutes(3);
  succeeded.run.status = 0;
  return {.success = std::nullopt, .runs = {running, lost, failed, succeeded}};
}

/// Checks the width of each line without zklock's own escape sequences.
void CheckFits(const std::string& text, std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else if (text[i] == '\n') {
      CAPTURE(line);
      CHECK(DisplayWidth(line) <= width);
      line.clear();
    } else {
      line += text[i];
    }
  }
  CHECK(line.empty());
}

}  // namespace

TEST_CASE("The screens match the stored ones") {
  test::UseUtc();
  for (const std::size_t width : {40, 80, 100, 200}) {
    for (const bool colours : {false, true}) {
      const std::string suffix = "." + std::to_string(width) + (colours ? ".colour" : "") + ".txt";
      const ViewStyle style{.width = width, .colours = colours, .now_ms = kNow};
      const std::string queue = Render({test::BusyLock()}, style);
      CheckFits(queue, width);
      CheckScreen("queue" + suffix, queue);
      const std::string permits = Render({test::Semaphore(true)}, style);
      CheckFits(permits, width);
      CheckScreen("permits" + suffix, permits);
      const std::string tree = Render(test::Tree(), style);
      CheckFits(tree, width);
      CheckScreen("tree" + suffix, tree);
      const std::string servers = ServersReportText(test::UnfitServers(), style);
      CheckFits(servers, width);
      CheckScreen("servers" + suffix, servers);
      const std::string history = HistoryText("/jobs/backup", History(), 100, style);
      CheckFits(history, width);
      CheckScreen("history" + suffix, history);
    }
  }
}

TEST_CASE("No screen is wider than its terminal or contains an untrusted control character") {
  test::UseUtc();
  for (std::size_t width = 32; width < 220; ++width) {
    CAPTURE(width);
    const ViewStyle style{.width = width, .now_ms = kNow};
    for (const std::string& text :
         {Render({test::BusyLock()}, style), Render({test::Semaphore(true)}, style),
          Render(test::Tree(), style), ServersReportText(test::UnfitServers(), style),
          HistoryText("/jobs/backup", History(), 100, style)}) {
      CheckFits(text, width);
      CHECK(text.find('\x1b') == std::string::npos);
      CHECK(text.find('\x07') == std::string::npos);
    }
  }
}

}  // namespace zklock::cli

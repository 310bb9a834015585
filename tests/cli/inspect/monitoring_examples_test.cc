// The examples for monitoring systems, read as those systems read them.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>

#include "cli/documents/documents.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

TEST_CASE("promtool accepts the example of alert rules, which fire when they should") {
  const TemporaryDirectory directory;
  (void)directory.Write("rules.yml", ReadSource("packaging/monitoring/zklock-alerts.yml"));
  const std::string test = directory.Write("test.yml", R"(
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1h
    input_series:
      - series: zklock_last_success_timestamp_seconds{lock="/jobs/old"}
        values: 0x40
      - series: zklock_last_success_timestamp_seconds{lock="/jobs/new"}
        values: 0+3600x40
      - series: zklock_last_run_status{lock="/jobs/new"}
        values: 0x40
      - series: zklock_last_run_lost{lock="/jobs/new"}
        values: 0x40
      - series: zklock_last_run_lost{lock="/jobs/lost"}
        values: 0x1 1x10
      - series: zklock_deadlocked{lock="/a"}
        values: 0 2x10
      - series: zklock_deadlocked{lock="/l"}
        values: 0x10
      - series: zklock_held_seconds{lock="/l"}
        values: 0+3600x40
      - series: zklock_reservation_end_timestamp_seconds{lock="/l",id="freeze"}
        values: 7200x40
    alert_rule_test:
      - eval_time: 26h
        alertname: ZklockJobOverdue
      - eval_time: 27h
        alertname: ZklockJobOverdue
        exp_alerts:
          - exp_labels: {severity: critical, lock: /jobs/old}
            exp_annotations: {summary: /jobs/old has not succeeded for 1d 3h 0m 0s}
      - eval_time: 27h
        alertname: ZklockJobFailed
      - eval_time: 1h
        alertname: ZklockRunLost
      - eval_time: 3h
        alertname: ZklockRunLost
        exp_alerts:
          - exp_labels: {severity: critical, lock: /jobs/lost}
            exp_annotations: {summary: "the last recorded run under /jobs/lost was lost: its end was not recorded"}
      - eval_time: 0
        alertname: ZklockDeadlock
      - eval_time: 2h
        alertname: ZklockDeadlock
        exp_alerts:
          - exp_labels: {severity: critical, lock: /a}
            exp_annotations: {summary: "2 contenders of /a wait for each other, and for other locks"}
      - eval_time: 2h
        alertname: ZklockHeldTooLong
      - eval_time: 3h
        alertname: ZklockHeldTooLong
        exp_alerts:
          - exp_labels: {severity: warning, lock: /l}
            exp_annotations: {summary: /l has been held for 3h 0m 0s}
      - eval_time: 3h
        alertname: ZklockReservationOverdue
        exp_alerts:
          - exp_labels: {severity: warning, lock: /l, id: freeze}
            exp_annotations: {summary: the reservation freeze of /l is overdue}
  - interval: 1m  # samples that are further apart would interrupt what lasts
    input_series:
      - series: zklock_held{lock="/jobs/new",instance="a"}
        values: 0x1620
      - series: zklock_last_success_timestamp_seconds{lock="/jobs/new",instance="a"}
        values: 0x1620
      - series: zklock_held{lock="/jobs/never",instance="a"}
        values: 0x1620
    alert_rule_test:
      - eval_time: 25h
        alertname: ZklockJobNeverSucceeded
      - eval_time: 27h
        alertname: ZklockJobNeverSucceeded
        exp_alerts:
          - exp_labels: {severity: critical, lock: /jobs/never, instance: a}
            exp_annotations: {summary: /jobs/never has never succeeded}
)");
  for (const Words& argv : {Words{"promtool", "check", "rules", directory.Path("rules.yml")},
                            Words{"promtool", "test", "rules", test}}) {
    const Finished finished = Run({.argv = argv});
    CAPTURE(finished.out, finished.err);
    CHECK(finished.exit == Exited(0));
  }
}

TEST_CASE("Nagios accepts the example of commands and a service") {
  const TemporaryDirectory directory;
  const std::string base = directory.Write("base.cfg", R"(
define timeperiod {
  timeperiod_name  24x7
  alias            always
  sunday           00:00-24:00
}
define command {
  command_name  notify
  command_line  /bin/true
}
define contact {
  contact_name                   admin
  host_notification_period       24x7
  service_notification_period    24x7
  host_notification_options      d
  service_notification_options   c
  host_notification_commands     notify
  service_notification_commands  notify
}
define host {
  host_name              zk1
  address                127.0.0.1
  max_check_attempts     1
  check_period           24x7
  contacts               admin
  notification_interval  0
  notification_period    24x7
}
)");
  const std::string example =
      directory.Write("zklock.cfg", ReadSource("packaging/monitoring/zklock-nagios.cfg"));
  // If started as root, it continues as another user, who must be able to read these files and to
  // write somewhere.
  REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
  const std::string log = directory.Path("log");
  const std::string main = directory.Write(
      "main.cfg", "cfg_file=" + base + "\ncfg_file=" + example + "\nlog_file=" + log +
                      "\ntemp_path=/tmp\ncheck_result_path=/tmp\n");
  const Finished finished = Run({.argv = {"/usr/sbin/nagios4", "-v", main}});
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == Exited(0));
  CHECK_THAT(finished.out, Catch::Contains("Total Errors:   0"));
}

}  // namespace
}  // namespace zklock::test

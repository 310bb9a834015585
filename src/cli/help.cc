#include "cli/help.h"

#include <fmt/core.h>

#include "build_info.h"
#include "zookeeper/client_library.h"

namespace zklock::cli {

std::string OverviewText() {
  return R"(zklock runs a command while it holds a ZooKeeper lock.

usage:
  zklock exclusive [OPTIONS] LOCK... -- COMMAND [ARG...]   one at a time
  zklock read      [OPTIONS] LOCK... -- COMMAND [ARG...]   readers together,
  zklock write     [OPTIONS] LOCK... -- COMMAND [ARG...]     a writer alone
  zklock try       [OPTIONS] LOCK... -- COMMAND [ARG...]   at once or not at all
  zklock inspect   [OPTIONS] [LOCK]                        who holds, who waits
  zklock release   [OPTIONS] LOCK                          let go, or have others do

  zklock SUBCOMMAND --help   the options of one
  zklock --version           versions, of the client library too
  zklock --print-config      each option's value, and where it comes from

The servers are named by --servers or $ZKLOCK_SERVERS; 127.0.0.1:2181 if not.

example:
  zklock exclusive --servers zk1:2181,zk2:2181 /jobs/backup -- ./backup.sh
)";
}

std::string VersionText() {
  return fmt::format("zklock {}\nZooKeeper C client {} ({} TLS, {} SASL)\n", kVersion,
                     zookeeper::ClientLibraryVersion(), kHaveTls ? "with" : "without",
                     kHaveSasl ? "with" : "without");
}

std::string RunFooter() {
  return R"(LOCK is a znode path: /jobs/backup as it is, backup below --root.
DURATION: 90, 1.5, 500ms, 30s, 5m, 2h, 1d, 1h30m (plain numbers are seconds).

exit status:
  the command's    it ran under the lock; killed by signal N: 128+N
  126, 127         it cannot be executed, is not there
  64               wrong words on the command line
  69               no server gave a session in time
  70, 71           a defect of zklock, a refusal by the system
  75 (or -E N)     the command was not run because of somebody else
  76               the lock was lost while it ran; it was stopped first
  77               the servers refused: ACL or credentials
  78               the LOCK cannot be used like this
  128+N            stopped by signal N while waiting
)";
}

std::string InspectFooter() {
  return R"(A LOCK that holds contenders is shown with its queue, any other path as the list
of the locks below it; without LOCK the locks below --root.

exit status: 0; with --quiet 0 free, 75 held; else as for 'zklock exclusive'
)";
}

std::string ReleaseFooter() {
  return R"(LOCK is a znode path. Alone, it is what this shell holds by --hold. Else others
are asked to let go; with --force the next may start before a loser's command
has ended.

exit status: 0 done, 75 there was nobody to ask, else as for 'zklock exclusive'
)";
}

}  // namespace zklock::cli

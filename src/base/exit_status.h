#pragma once

namespace zklock {

/// zklock's own exit statuses (man page, EXIT STATUS). Every other status is the command's.
enum ExitStatus : int {
  kExitOk = 0,
  kExitUsage = 64,
  kExitUnavailable = 69,    ///< no server reached, or no session established, in time
  kExitInternal = 70,       ///< a defect of zklock
  kExitSystem = 71,         ///< the system refused something (no fork, no /proc)
  kExitConflict = 75,       ///< another contender kept the command from running; see -E
  kExitLost = 76,           ///< the lock was lost or taken away while the command ran
  kExitRefused = 77,        ///< the servers refused access: credentials or ACL
  kExitConfiguration = 78,  ///< a bad file, or a LOCK that cannot be used this way
  kExitTooLong = 124,       ///< --max-run ended the command; same as timeout(1)
  kExitCannotExecute = 126,
  kExitNotFound = 127,
  kExitSignalBase = 128,  ///< plus the signal's number
};

}  // namespace zklock

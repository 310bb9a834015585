// zklock broken on purpose: when it forwards a signal to the command, it closes its session, and so
// releases the lock, before the command has ended. The linker puts this in place of
// commands::SessionForGuard::Set(), to find the session, and process::Supervisor::Forward()
// (--wrap in cmake/Faults.cmake).

#include "commands/session/session_for_guard.h"
#include "process/guard/supervisor.h"
#include "zookeeper/session.h"

namespace zklock {
namespace {

zookeeper::Session* found_session = nullptr;

}  // namespace

void RealSet(commands::SessionForGuard* shared, zookeeper::Session& session) asm(
    "__real__ZN6zklock8commands15SessionForGuard3SetERKNS_9zookeeper7SessionE");
void FindSession(commands::SessionForGuard* shared, zookeeper::Session& session) asm(
    "__wrap__ZN6zklock8commands15SessionForGuard3SetERKNS_9zookeeper7SessionE");

void FindSession(commands::SessionForGuard* shared, zookeeper::Session& session) {
  found_session = &session;
  RealSet(shared, session);
}

void RealForward(process::Supervisor* supervisor,
                 int signal_number) asm("__real__ZN6zklock7process10Supervisor7ForwardEi");
void ForwardAndRelease(process::Supervisor* supervisor,
                       int signal_number) asm("__wrap__ZN6zklock7process10Supervisor7ForwardEi");

void ForwardAndRelease(process::Supervisor* supervisor, int signal_number) {
  RealForward(supervisor, signal_number);
  if (found_session != nullptr) found_session->BeginClose();
}

}  // namespace zklock

// zklock broken on purpose: when it forwards a signal to the command, it closes its session, and so
// releases the lock, before the command has ended. The linker puts this in place of
// process::EventLoop::Add(), to find the session, and process::Supervisor::Forward()
// (--wrap in cmake/Faults.cmake).

#include "process/guard/supervisor.h"
#include "process/loop/event_loop.h"
#include "zookeeper/session.h"

namespace zklock::process {
namespace {

zookeeper::Session* found_session = nullptr;

}  // namespace

void RealAdd(EventLoop* loop,
             EventSource& source) asm("__real__ZN6zklock7process9EventLoop3AddERNS_11EventSourceE");
void FindSession(EventLoop* loop, EventSource& source) asm(
    "__wrap__ZN6zklock7process9EventLoop3AddERNS_11EventSourceE");

void FindSession(EventLoop* loop, EventSource& source) {
  if (auto* session = dynamic_cast<zookeeper::Session*>(&source)) found_session = session;
  RealAdd(loop, source);
}

void RealForward(Supervisor* supervisor,
                 int signal_number) asm("__real__ZN6zklock7process10Supervisor7ForwardEi");
void ForwardAndRelease(Supervisor* supervisor,
                       int signal_number) asm("__wrap__ZN6zklock7process10Supervisor7ForwardEi");

void ForwardAndRelease(Supervisor* supervisor, int signal_number) {
  RealForward(supervisor, signal_number);
  if (found_session != nullptr) found_session->BeginClose();
}

}  // namespace zklock::process

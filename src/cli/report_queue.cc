#include "cli/report_queue.h"

#include <fmt/format.h>

#include <cstring>

#include "cli/printable.h"

namespace zklock::cli {
namespace {

/// ", user ci on build7, pid 4242, backup.sh", as far as known.
std::string Who(const ContenderView& contender) {
  const ContenderData& data = contender.data;
  std::string who;
  const auto add = [&who](const std::string& part) { who += (who.empty() ? "" : ", ") + part; };
  if (data.user && data.host) {
    add(fmt::format("user {} on {}", Printable(*data.user), Printable(*data.host)));
  } else if (data.host) {
    add("on " + Printable(*data.host));
  }
  if (data.pid) add(fmt::format("pid {}", *data.pid));
  if (data.command) add(Printable(*data.command));
  if (data.label) add(fmt::format("label '{}'", Printable(*data.label)));
  if (!who.empty()) return who;
  if (!contender.readable) return "whose data we may not read";
  if (contender.program == protocol::Program::kUnknown) return "of a program that is not known";
  return fmt::format("of {}, which does not say whose", ProgramName(contender));
}

}  // namespace

std::string Unlistable(const std::vector<std::string>& paths) {
  const std::string others = paths.size() == 1 ? "" : fmt::format(" and {} more", paths.size() - 1);
  return fmt::format("the servers do not let us list {}{}: what is locked there is not shown",
                     Printable(paths.front()), others);
}

std::string CannotPrint(const std::string& why) {
  return fmt::format("cannot write to standard output: {}", why);
}

std::string StoppedBy(int signal_number) {
  const char* const name = sigabbrev_np(signal_number);
  return name != nullptr ? fmt::format("stopped by SIG{}", name)
                         : fmt::format("stopped by signal {}", signal_number);
}

std::string Meant(const std::string& lock, const ContenderView& contender) {
  const std::string_view does = contender.state == ContenderState::kHeld ? "holds" : "waits for";
  return fmt::format("{} {} {} ({}): {}", Printable(contender.name), does, lock,
                     contender.for_permit ? "a permit" : protocol::ModeName(contender.mode),
                     Who(contender));
}

std::string ReleaseQuestion() { return "release it? [y/N] "; }

std::string WantsYes() {
  return "release: no terminal to ask on, and no --yes: nothing was released";
}

std::string NotThere(const std::string& lock, const std::string& contender) {
  return fmt::format("{} is not in {} (any more): nothing was released", Printable(contender),
                     lock);
}

std::string NoContender(const std::string& lock, const std::string& contender) {
  return fmt::format(
      "{} in {} is no contender (it does not end with a session): nothing was released",
      Printable(contender), lock);
}

std::string NothingReleased(const std::string& lock) {
  return fmt::format("{}: nothing was released", lock);
}

std::string NobodyThere(const std::string& lock) {
  return fmt::format("{} has nobody of that kind: nothing was released", lock);
}

std::string NothingHeld(const std::string& lock) {
  return fmt::format("this shell does not hold {} (by --hold): nothing was released", lock);
}

std::string CannotBeAsked(const ContenderView& contender) {
  return fmt::format("{} cannot be asked, its program knows no such question: see --force",
                     Printable(contender.name));
}

std::string Asked(const std::string& lock, const ContenderView& contender) {
  return fmt::format("{} was asked to let go of {}{}", Printable(contender.name), lock,
                     contender.program == protocol::Program::kCurator
                         ? " (it does if its program has made the lock revocable)"
                         : "");
}

std::string ForcedOut(const std::string& lock, const std::string& contender) {
  return fmt::format(
      "{} was deleted from {}: until the loser's command has ended, two may run together",
      Printable(contender), lock);
}

}  // namespace zklock::cli

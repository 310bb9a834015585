#include "commands/inspect/monitoring.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/exit_status.h"
#include "base/unique_fd.h"
#include "cli/reports/report_queue.h"
#include "cli/text/printable.h"
#include "cli/text/queue_messages.h"
#include "cli/views/queue_check.h"
#include "cli/views/queue_metrics.h"
#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "commands/session/output.h"
#include "commands/session/short_session.h"
#include "lock/survey/survey.h"

namespace zklock::commands {
namespace {

using Scope = lock::SurveyRequest::Scope;

lock::SurveyRequest RequestFor(const cli::InspectOptions& options, const std::string& path,
                               Scope scope) {
  return {.place = lock::LockName::In(options.server.servers.chroot, path),
          .scope = scope,
          .most_data = lock::kMostContenderData,
          .with_last_run = true,
          .with_free = true,
          .below_contenders = true,
          .connect_timeout = options.server.connect_timeout};
}

/// Returns whether the failure concerns only this path: the servers answer, but we lack permission
/// to read it.
bool IsAboutPath(const lock::ServerOperation& operation) {
  if (!operation.failure()) return false;
  const auto* refused = std::get_if<lock::Refused>(&*operation.failure());
  return refused != nullptr && refused->error == zookeeper::Error::kNoAuth;
}

// ---- replacing a whole file --------------------------------------------------------------------

/// Why a NewFile could not be written, without the file's name.
class NotReplaced : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that is written under a temporary name in the same directory, and renamed when it is
/// complete: readers see the old file or the new one, never an incomplete one. If it has not been
/// renamed, the destructor deletes it. It gets the old file's mode and, where permitted, owner and
/// group. Throws NotReplaced.
class NewFile {
 public:
  /// If `path` exists, it must be a regular file: the rename would replace a device or a symbolic
  /// link itself.
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Writes all of `text` to the disk.
  void Write(std::string_view text);
  void Replace();

 private:
  const std::string path_;
  std::string temporary_;  ///< empty: no file to delete
  UniqueFd fd_;
  std::optional<struct stat> old_;
};

[[noreturn]] void ThrowErrno() { throw NotReplaced(std::generic_category().message(errno)); }

/// Returns the mode of a file that open() creates for everyone to read.
mode_t NewFileMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0644U & ~mask;
}

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  struct stat present {};
  if (lstat(path_.c_str(), &present) == 0) {
    if (!S_ISREG(present.st_mode)) throw NotReplaced(cli::message::kNoPlainFile);
    old_ = present;
  } else if (errno != ENOENT) {
    ThrowErrno();
  }
  // Hidden, and without the suffix .prom, so that collectors of *.prom do not read it.
  const std::size_t slash = path_.rfind('/') + 1;
  std::string pattern = path_.substr(0, slash) + ".zklock.XXXXXX";
  fd_ = UniqueFd(mkostemp(pattern.data(), O_CLOEXEC));
  if (!fd_) ThrowErrno();
  temporary_ = std::move(pattern);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) ThrowErrno();
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  // This precedes fchown(2): without CAP_FOWNER, only the owner may change the mode.
  if (fchmod(fd_.get(), old_ ? old_->st_mode & 0777U : NewFileMode()) != 0) ThrowErrno();
  if (old_ && fchown(fd_.get(), old_->st_uid, old_->st_gid) != 0) {
    (void)!fchown(fd_.get(), static_cast<uid_t>(-1), old_->st_gid);  // we may be in that group
  }
  // Without this, a crash of the host might leave the new name without the data.
  if (fsync(fd_.get()) != 0) ThrowErrno();
}

void NewFile::Replace() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) ThrowErrno();
  temporary_.clear();
}

/// Replaces `file`. Returns the exit status on failure, otherwise none.
std::optional<int> Replace(const std::string& file, const std::string& text,
                           process::Signals& signals, cli::Report& report) {
  try {
    NewFile written(file);
    written.Write(text);
    if (const auto signal = TakeEndingSignal(signals)) return InterruptedBy(*signal, report);
    written.Replace();
    return std::nullopt;
  } catch (const NotReplaced& error) {
    report.Error(cli::message::kCannotReplace, cli::Printable(file), error.what());
    return kExitSystem;
  }
}

}  // namespace

int InspectCheck(const cli::InspectOptions& options, process::Signals& signals,
                 cli::Report& report) {
  cli::QueueCheck check(options.limits, cli::MillisecondsNow());
  ShortSession session(options.server, signals, report);
  bool lacks_chroot = false;
  for (const std::string& path : options.paths) {
    lock::Survey survey(session.store(), session.clock(),
                        RequestFor(options, path, path == "/" ? Scope::kTree : Scope::kGuess),
                        &check);
    const auto signal = session.RunUntilLeft(survey, [] { return false; });
    if (signal) return InterruptedBy(*signal, report);
    if (const auto end = session.FailureEndOf(survey)) {
      check.AddUnknown(end->message);
      if (!IsAboutPath(survey)) break;
    } else {
      check.EndPath(path, survey.result().unlistable);
      try {
        lacks_chroot = lacks_chroot || (!survey.result().exists && session.LacksChroot());
      } catch (const Exit& exit) {
        // The connection has just been lost, but the findings are still true.
        if (exit.status() >= kExitSignalBase) throw;
      }
    }
  }
  session.Close();
  if (lacks_chroot) {
    const std::string chroot = cli::Printable(options.server.servers.chroot);
    check.AddUnknown(fmt::format(cli::message::kNoChroot, chroot));
  }
  const cli::CheckResult result = check.Result();
  const int unknown = static_cast<int>(cli::CheckState::kUnknown);
  if (const auto status = PrintWhole(result.line, signals, report)) {
    return *status == kExitSystem ? unknown : *status;
  }
  return static_cast<int>(result.state);
}

int CheckFailed(std::string_view why) {
  const cli::CheckResult result = cli::UnknownCheck(why);
  (void)std::fwrite(result.line.data(), 1, result.line.size(), stdout);
  (void)std::fflush(stdout);
  return static_cast<int>(result.state);
}

int InspectMetrics(const cli::InspectOptions& options, process::Signals& signals,
                   cli::Report& report) {
  cli::QueueMetrics metrics(cli::MillisecondsNow());
  ShortSession session(options.server, signals, report);
  lock::Survey survey(session.store(), session.clock(),
                      RequestFor(options, options.path, Scope::kTree), &metrics);
  session.Run(survey);
  const bool lacks_chroot = !survey.result().exists && session.LacksChroot();
  session.Close();
  const auto& unlistable = survey.result().unlistable;
  const std::string text = metrics.Text(unlistable.size());
  const auto status = options.output.empty() ? PrintWhole(text, signals, report)
                                             : Replace(options.output, text, signals, report);
  if (status) return *status;
  if (lacks_chroot) {
    report.Say(cli::message::kNoChroot, cli::Printable(options.server.servers.chroot));
  }
  if (!unlistable.empty()) report.Say(cli::Unlistable(unlistable));
  return kExitOk;
}

}  // namespace zklock::commands

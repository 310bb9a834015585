#pragma once

#include <fmt/core.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/config.h"
#include "cli/messages.h"
#include "cli/options.h"

namespace zklock::cli {

/// Where an option's value comes from, the stronger ones later.
enum class Origin { kDefault, kConfig, kEnvironment, kArgument };

/// The grammar of one subcommand, over CLI11, which no other file knows: options are added, the
/// words, the environment and the configuration read, and then each text is judged. Errors name the
/// option, its text, where it comes from if not from the words, and what is wrong with it: a
/// ConfigError for what stands in a file, else a UsageError.
class Grammar {
 public:
  /// A string literal: kept, not copied, and read to its null.
  using Literal = std::string_view;

  explicit Grammar(std::string subcommand);
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  /// An option with a value, in the order of --help. `value` outlives the grammar and holds the
  /// default; `environment`, if any, is the variable that replaces that. The last one given counts.
  void AddValue(Literal names, std::string& value, Literal type, Literal help,
                Literal environment = "");
  /// One that may be given several times. Of neither environment nor configuration.
  void AddList(Literal names, std::vector<std::string>& values, Literal type, Literal help);
  void AddFlag(Literal names, bool& value, Literal help);
  /// One that is no configuration's: a line of its name is about another option.
  void AddOwnFlag(Literal names, bool& value, Literal help);
  /// What every subcommand has: --servers, --root, the two time-outs, --auth-file, --tls-… and
  /// --config.
  void AddServerOptions();
  /// -q and -v.
  void AddVerbosity();

  /// Reads `arguments`, the environment and the configuration; the help text, if that is what the
  /// arguments ask for.
  [[nodiscard]] std::optional<Text> Read(const std::vector<std::string>& arguments,
                                         const std::string& usage, const std::string& footer);

  /// Whether `name` (as in `--wait`) is an option of this subcommand and has not its default.
  [[nodiscard]] bool WasGiven(std::string_view name) const;
  /// As an argument: by whom it is about, not by a file that is about everything.
  [[nodiscard]] bool IsArgument(std::string_view name) const;
  /// File and line, where a configuration gives it; else empty.
  [[nodiscard]] std::string PlaceOf(std::string_view name) const;
  /// Of two options that exclude each other only the one from the stronger origin stays given; an
  /// error where both are of the same.
  void KeepStronger(const std::string& one, const std::string& other);
  /// Each option that a configuration can set, a line `name = value  # where it comes from`. As a
  /// configuration it means the same: an option without a value, and one that no line can set, are
  /// comments.
  [[nodiscard]] std::string ShowConfig() const;
  /// The words that were no options, as they came.
  [[nodiscard]] const std::vector<std::string>& locks() const { return locks_; }

  [[nodiscard]] UsageError Error(const std::string& what) const { return {what, name_}; }
  /// Throws `what`, which is wrong with the value of `option` (as in `--wait`).
  [[noreturn]] void Reject(const std::string& option, const std::string& what) const;
  [[nodiscard]] Duration ReadDuration(const std::string& option, const std::string& text,
                                      bool zero_is_fine) const;
  /// One of `choices`; the error lists them.
  template <typename T>
  [[nodiscard]] T ReadChoice(const std::string& option, const std::string& text,
                             const std::vector<std::pair<std::string, T>>& choices) const {
    std::string known;
    for (const auto& [word, value] : choices) {
      if (text == word) return value;
      known += (known.empty() ? "" : ", ") + word;
    }
    Reject(option, fmt::format(message::kNoChoice, option, text, known));
  }
  /// Also throws UnsafeFile.
  [[nodiscard]] ServerOptions ReadServerOptions() const;
  [[nodiscard]] std::string ReadRoot() const;
  /// Throws if no LOCK was named.
  void RequireLock() const;
  /// The one LOCK that was named, absolute and checked.
  [[nodiscard]] std::string ReadLock() const;
  /// A word for a LOCK, absolute and checked.
  [[nodiscard]] std::string ResolveLock(const std::string& word) const;
  [[nodiscard]] Verbosity ReadVerbosity() const;

 private:
  struct Parser;
  struct Option;

  void Declare(const std::vector<std::string>& arguments);
  [[nodiscard]] const Option* Find(std::string_view name) const;
  void Apply(const Setting& setting);
  void ReadEnvironment();
  void ReadLocks(const std::vector<std::string>& arguments);
  [[nodiscard]] std::vector<zookeeper::AuthInfo> ReadCredentials() const;
  void RefuseTls() const;
  void CheckPath(const std::string& option, const std::string& what, const std::string& path) const;

  const std::string name_;
  std::unique_ptr<Parser> parser_;
  std::vector<Option> options_;
  std::vector<std::string> locks_;
  std::string servers_;
  std::string root_;
  std::string connect_timeout_;
  std::string session_timeout_;
  std::string auth_file_;
  std::string tls_ca_;
  std::string tls_cert_;
  std::string tls_key_;
  std::string config_;
  std::string unused_config_;
  bool quiet_ = false;
  bool verbose_ = false;
};

/// A whole number from `least` to `most`, nothing around it.
[[nodiscard]] std::optional<int> ParseNumber(std::string_view text, int least, int most);

}  // namespace zklock::cli

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.h"

// The options of all subcommands: a table with one row for each option. The parser, the help, the
// completion, the configuration file and --print-config all work from this table.

namespace zklock::cli {

/// Where the rows of the table store their values; each subcommand uses its part.
struct OptionFields {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  bool dry_run = false;
  RunOptions run;
  InspectOptions inspect;
  ReleaseOptions release;
};

/// A set of subcommands, as bits.
using Subcommands = unsigned;
inline constexpr Subcommands kExclusive = 1;
inline constexpr Subcommands kRead = 2;
inline constexpr Subcommands kWrite = 4;
inline constexpr Subcommands kTry = 8;
inline constexpr Subcommands kInspect = 16;
inline constexpr Subcommands kRelease = 32;

struct SubcommandSpec {
  std::string_view name;
  Subcommands bit;
  std::string_view arguments;  ///< for the usage line
  std::string_view summary;    ///< for completion
  [[nodiscard]] bool RunsCommand() const;
};

/// Where an option's value comes from; later origins override earlier ones.
enum class Origin { kDefault, kSystemConfig, kConfig, kEnvironment, kArgument };

struct OptionValue;

/// The heading under which --help shows an option.
enum class Section {
  kView,     ///< of inspect
  kTargets,  ///< of release
  kWaiting,
  kSharing,
  kReservations,
  kCommand,
  kServers,
  kOutput,
};

/// One option: a row of the table. Its texts are literals.
struct OptionSpec {
  char letter = '\0';         ///< 'w' for -w; none: 0
  std::string_view name;      ///< "wait" for --wait; empty: a letter only
  std::string_view alias;     ///< another long name, neither in help nor in completion
  std::string_view metavar;   ///< "DURATION", "stop|warn"; empty: a flag
  std::string_view fallback;  ///< the default, as text; empty: none
  std::string_view help;      ///< the default is appended
  Section section = Section::kOutput;
  bool is_common = false;  ///< -h also shows it
  Subcommands subcommands = 0;
  std::string_view environment;  ///< the variable that can set it instead
  bool in_file = false;          ///< whether a configuration file may set it
  /// The value determines which lock is meant, so an empty variable is an error, not the default.
  bool decides_lock = false;
  bool repeatable = false;  ///< takes a list; otherwise the last one given counts
  /// Checks and stores the value; null: the subcommand reads it from the OptionReader. Returns what
  /// is wrong with the value, or "". May throw ConfigError and UnsafeFile for a file that it names.
  std::string (*store)(const OptionValue&, OptionFields&) = nullptr;

  [[nodiscard]] bool IsFlag() const { return metavar.empty(); }
  /// Returns the name in messages: "--wait", or "-c".
  [[nodiscard]] std::string Name() const;
  /// Returns whether `word` names this option: "-w", "--wait", "--wait=5s", or the alias.
  [[nodiscard]] bool HasName(std::string_view word) const;
  /// Returns `help` with the default.
  [[nodiscard]] std::string Help() const;
  /// Returns the words of a `metavar` such as "stop|warn"; none if it is not a choice of words.
  [[nodiscard]] std::vector<std::string> Choices() const;
};

/// Options that exclude or require other options of the same subcommand, whatever their values are.
/// Names are as in OptionSpec::Name(), separated by spaces.
struct OptionRule {
  enum class Kind {
    kExcludes,  ///< each of `options` excludes all of `others` except itself
    kRequires,  ///< each of `options` requires at least one of `others`
  };
  Subcommands subcommands = 0;
  std::string_view options;
  Kind kind = Kind::kExcludes;
  std::string_view others;
  std::string_view why;  ///< the end of the message; may be empty
  /// `options` count only if given as arguments: in a file, they are defaults for all runs.
  bool only_arguments = false;
};

/// An option's value in one run.
struct OptionValue {
  const OptionSpec* spec = nullptr;
  bool flag = false;
  std::string text;  ///< for an option that is not a flag: its value, or the default
  std::vector<std::string> list;
  Origin origin = Origin::kDefault;
  std::string place;  ///< file and line in a configuration file

  [[nodiscard]] bool WasGiven() const { return origin != Origin::kDefault; }
  /// Returns "default", "$ZKLOCK_SERVERS", "/etc/zklock.conf:3" or "argument".
  [[nodiscard]] std::string OriginText() const;
  /// Returns whether it was given or has a default.
  [[nodiscard]] bool IsSet() const { return WasGiven() || !text.empty(); }
};

/// Returns the table, in the order of the help.
[[nodiscard]] std::span<const OptionSpec> OptionTable();
/// Returns the rules, in the order in which they are checked.
[[nodiscard]] std::span<const OptionRule> OptionRules();
/// Splits a list of names in an OptionRule.
[[nodiscard]] std::vector<std::string_view> NamesIn(std::string_view list);
/// Returns the rows for a subcommand.
[[nodiscard]] std::vector<const OptionSpec*> OptionsOf(Subcommands subcommand);
/// Returns the names of the subcommands that have an option of this name.
[[nodiscard]] std::vector<std::string_view> SubcommandsWith(std::string_view option);
/// Returns the names that a configuration file can set, in the order of the table.
[[nodiscard]] const std::vector<std::string_view>& ConfigurableNames();

[[nodiscard]] std::span<const SubcommandSpec> SubcommandTable();
/// Returns null if there is no subcommand of that name.
[[nodiscard]] const SubcommandSpec* FindSubcommand(std::string_view name);
/// Returns the entry for `zklock --print-config`, which takes the options of `exclusive`.
[[nodiscard]] const SubcommandSpec& PrintConfigSpec();

}  // namespace zklock::cli

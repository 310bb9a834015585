#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/option_table.h"
#include "cli/options/options.h"

namespace zklock::cli {

/// Reads the options of one subcommand according to the option table, from the arguments, the
/// environment and the configuration files. Errors name the option, its value, its origin if that
/// is not an argument, and what is wrong: ConfigError for a value from a configuration file,
/// otherwise UsageError.
class OptionReader {
 public:
  explicit OptionReader(const SubcommandSpec& subcommand);

  /// Reads `arguments`, the environment and the configuration. Returns false if the arguments ask
  /// for help; most errors in them are then ignored.
  [[nodiscard]] bool Read(const std::vector<std::string>& arguments);

  /// Call it before Read() for the `arguments` of a run without `--`. Unless an option such as -c
  /// or --hold replaces the command, throws if `arguments` seem to contain a command or name
  /// several LOCKs: reading the command's words as zklock's would only cause confusing errors.
  void RequireSeparator(const std::vector<std::string>& arguments) const;

  /// Returns whether the option was given; false if the subcommand has no such option. `name`: as
  /// in OptionSpec::Name().
  [[nodiscard]] bool WasGiven(std::string_view name) const;
  /// Returns whether the option was given; false for a flag that a file turns off.
  [[nodiscard]] bool IsOn(std::string_view name) const;
  /// Returns whether the option was given as an argument, and so is meant for this run, not for all
  /// runs.
  [[nodiscard]] bool IsArgument(std::string_view name) const;
  /// Returns the value of an option that the subcommand has.
  [[nodiscard]] const OptionValue& Value(std::string_view name) const;
  /// Returns the LOCKs, as typed.
  [[nodiscard]] const std::vector<std::string>& locks() const { return locks_; }

  /// Given two options that cannot be used together, keeps only the one from the stronger origin.
  /// Throws if both have the same origin.
  void KeepStronger(std::string_view one, std::string_view other);
  /// Checks the table's rules about options that were given together.
  void CheckRules() const;
  /// Checks all values, and stores those that the table has a field for.
  void Store(OptionFields& fields) const;

  [[nodiscard]] UsageError Error(const std::string& what) const;
  /// Throws an error about the value of `option`; `what` says what is wrong with it.
  [[noreturn]] void Reject(std::string_view option, const std::string& what) const;

  /// Throws if no LOCK was named.
  void RequireLock() const;
  /// Returns the only LOCK, absolute and checked.
  [[nodiscard]] std::string ReadLock(const std::string& root) const;
  /// Returns `word` as a LOCK, absolute and checked. A relative path with several components is
  /// accepted only if --root was given.
  [[nodiscard]] std::string ResolveLock(const std::string& word, const std::string& root) const;

  /// Returns a line `name = value  # origin` for each option that a configuration file can set. The
  /// text works as a configuration file with the same meaning: options without a value, and values
  /// that no line can express, are comments.
  [[nodiscard]] std::string ShowConfig() const;

 private:
  using Words = std::vector<std::string>;

  /// Returns the words that are not options of the subcommand, nor their values.
  Words ReadArguments(const Words& arguments);
  /// Reads LOCKs. `others`: what ReadArguments() returned.
  void ReadOthers(const Words& others);
  void ReadEnvironment();
  void ReadFiles();
  [[nodiscard]] std::string UnknownOption(const std::string& word) const;
  /// Returns the subcommand's option that `word` names; null if there is none.
  [[nodiscard]] const OptionSpec* SpecOf(std::string_view word) const;
  [[nodiscard]] const OptionValue* Find(std::string_view name) const;
  void CheckRule(const OptionRule& rule, std::string_view option) const;

  const SubcommandSpec& subcommand_;
  std::vector<OptionValue> values_;  ///< in the order of the table
  std::vector<std::string> locks_;
  std::string unused_config_;
};

}  // namespace zklock::cli

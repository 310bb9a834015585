#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/option_table.h"
#include "cli/options/options.h"

namespace zklock::cli {

/// The words of one subcommand, read by the table of options: the arguments (with CLI11, which no
/// other file includes), the environment and the configuration files. Errors name the option, its
/// value, its origin if it is not an argument, and what is wrong with it: a ConfigError for
/// a configuration file, else a UsageError.
class OptionReader {
 public:
  explicit OptionReader(const SubcommandSpec& subcommand);
  ~OptionReader();
  OptionReader(const OptionReader&) = delete;
  OptionReader& operator=(const OptionReader&) = delete;

  /// Reads `arguments`, the environment and the configuration. Returns false if the arguments ask
  /// for help, whatever else is wrong with them.
  [[nodiscard]] bool Read(const std::vector<std::string>& arguments);

  /// For `arguments` of a run that no `--` follows. Throws if they name a command all the same, or
  /// several LOCKs and no other use for them: to take the command's words for zklock's would only
  /// confuse. Before Read().
  void RequireSeparator(const std::vector<std::string>& arguments) const;

  /// `name` is as in OptionSpec::Name, also where the subcommand has no such option.
  [[nodiscard]] bool WasGiven(std::string_view name) const;
  /// Whether it was given, and not as a flag that a file turns off.
  [[nodiscard]] bool IsOn(std::string_view name) const;
  /// Whether the option is an argument: then it is meant for this run, not for all of them.
  [[nodiscard]] bool IsArgument(std::string_view name) const;
  /// The value of an option that the subcommand has.
  [[nodiscard]] const OptionValue& Value(std::string_view name) const;
  /// The LOCKs, as typed.
  [[nodiscard]] const std::vector<std::string>& locks() const { return locks_; }

  /// Of two options that cannot be used together only the one from the stronger origin stays given;
  /// an error if both have the same origin.
  void KeepStronger(std::string_view one, std::string_view other);
  /// Checks the table's rules on options that were given together.
  void CheckRules() const;
  /// Checks all values, and stores those that the table has a field for.
  void Store(OptionFields& fields) const;

  [[nodiscard]] UsageError Error(const std::string& what) const;
  /// Throws `what`, which is wrong with the value of `option`.
  [[noreturn]] void Reject(std::string_view option, const std::string& what) const;

  /// Throws if no LOCK was named.
  void RequireLock() const;
  /// The only LOCK, absolute and checked.
  [[nodiscard]] std::string ReadLock(const std::string& root) const;
  /// `word` as a LOCK, absolute and checked. A relative path of several names is accepted only if
  /// --root was given.
  [[nodiscard]] std::string ResolveLock(const std::string& word, const std::string& root) const;

  /// A line `name = value  # origin` for each option that a configuration file can set. As a
  /// configuration file the text means the same: options without a value, and values that no line
  /// can express, are comments.
  [[nodiscard]] std::string ShowConfig() const;

 private:
  struct Parser;
  using Words = std::vector<std::string>;

  void Declare(const Words& arguments);
  void Parse(const Words& arguments);
  void ReadExtras(const Words& arguments);
  void ReadEnvironment();
  void ReadFiles();
  void RefuseValuesOfFlags(const Words& arguments) const;
  [[nodiscard]] std::string UnknownOption(const std::string& word) const;
  /// The option of the subcommand that `word` names; null if there is none.
  [[nodiscard]] const OptionSpec* SpecOf(std::string_view word) const;
  [[nodiscard]] const OptionValue* Find(std::string_view name) const;
  void CheckRule(const OptionRule& rule, std::string_view option) const;

  const SubcommandSpec& subcommand_;
  std::unique_ptr<Parser> parser_;
  std::vector<OptionValue> values_;  ///< in the order of the table; CLI11 writes into them
  std::vector<std::string> locks_;
  std::string unused_config_;
};

}  // namespace zklock::cli

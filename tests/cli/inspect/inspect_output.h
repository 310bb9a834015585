#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/zklock.h"
#include "support/source.h"

namespace zklock::test {

/// Returns the standard output of `zklock inspect ARGUMENTS`, which must succeed and print no
/// message.
inline std::string Inspect(const Words& arguments) {
  const Finished finished = RunZklock(Words{"inspect"} + arguments);
  CAPTURE(arguments, finished.err);
  CHECK(finished.exit == Exited(0));
  CHECK(finished.err.empty());
  return finished.out;
}

/// Checks JSON against the manual page with an independent parser.
inline void CheckSchema(const std::string& text, const Words& arguments = {}) {
  ChildOptions options;
  options.argv = Words{"/usr/bin/python3", "-B", SourcePath("tests/cli/inspect/inspect_schema.py"),
                       SourcePath("man/zklock-inspect.1")} +
                 arguments;
  options.stdin_text = text;
  const Finished finished = Run(options);
  CAPTURE(text, finished.out, finished.err);
  CHECK(finished.exit == Exited(0));
}

inline nlohmann::json InspectJson(const std::string& path) {
  const std::string text = Inspect({"--json", path});
  CheckSchema(text);
  return nlohmann::json::parse(text);
}

}  // namespace zklock::test

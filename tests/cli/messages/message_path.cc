// Messages about invalid paths, invalid lists of servers, and unknown words.

#include "cli/messages/provocation.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

Provocation OfLock(const char* message, const std::string& lock) {
  return {{Part(message)}, [lock] { return SaidBy({"try", lock, "--", "true"}, 64); }};
}

Provocation OfServers(const char* message, const std::string& servers) {
  return {{Part(message)}, [servers] { return SaidBy({"inspect", "-z", servers, "/l"}, 64); }};
}

/// All `parts` belong to one line.
Provocation OfWords(const Words& words, const std::vector<const char*>& parts) {
  Provocation provocation{{}, [words] { return SaidBy(words, 64); }};
  for (const char* part : parts) provocation.says.push_back(Part(part));
  return provocation;
}

}  // namespace

Provocations PathProvocations() {
  return {
      OfLock("kIsEmpty", ""),
      OfLock("kIsRoot", "/"),
      OfLock("kZooKeepers", "/zookeeper"),
      OfLock("kEndsInSlash", "/a/"),
      OfLock("kEmptyComponent", "/a//b"),
      OfLock("kDot", "/a/./b"),
      OfLock("kDotDot", "/a/../b"),
      OfLock("kNoUtf8", "/\xff"),
      OfLock("kControlCharacter", "/a\nb"),
      OfLock("kBlankAtEnd", "/a "),
      OfLock("kIsRecord", "/a/last-run"),
      OfLock("kIsContender", "/a/host-lock-0000000001"),
      OfLock("kRefusedCharacter", "/\xef\xbf\xbf"),
      {{Part("kNotAbsolute")},
       [] {
         return SaidBy({"inspect", "--root", "locks", "l"}, 64);
       }},
      OfServers("kNamesNone", "/app"),
      OfServers("kItsChroot", "zk1/app//"),
      OfServers("kServersBehind", "zk1/app,zk2/app"),
      OfServers("kHasScheme", "zk://zk1:2181"),
      OfServers("kHasBlank", "zk1 zk2"),
      OfServers("kHasSemicolon", "zk1:2181;zk2:2181/app"),
      OfServers("kNoBracket", "[::1"),
      OfServers("kNoIpv6", "[zk1]:2181"),
      OfServers("kBehindBracket", "[::1]2181"),
      OfServers("kSeveralColons", "::1:2181"),
      OfServers("kNoHost", "zk1,:2181"),
      OfServers("kBadHost", "zk_1,zk!"),
      OfServers("kBadPort", "zk1:0"),
      OfWords({"exlusive"}, {"kUnknownSubcommand", "kDidYouMean"}),
      OfWords({"exclusive", "-x", "/l", "--", "true"}, {"kUnknownOption", "kDoneAlready"}),
      OfWords({"frob", "/l"}, {"kUnknownSubcommand", "kKnownSubcommands"}),
      OfWords({"try", "/l", "--fast"}, {"kUnknownOption", "kCommandsOptions"}),
      {{"kChrootCreated"},
       [] {
         return SaidBy(
             {"exclusive", "-v", "-z", TestServers() + NewLock("chroot"), "/lock", "--", "true"},
             0);
       }},
      {{Part("kMissingChroot")},
       [] {
         return SaidBy({"exclusive", "-z", TestServers() + "/nowhere", "--resume", "id", "/lock",
                        "--", "true"},
                       75);
       }},
      {{"kMaxRunUnused"},
       [] {
         const TemporaryDirectory directory;
         const std::string file = directory.Write("zklock.conf", "max-run = 1h\n");
         return SaidBy({"exclusive", "-v", "--config", file, "--on-lost", "warn", NewLock("said"),
                        "--", "true"},
                       0);
       }},
      {{Part("kKnownSettings")},
       [] {
         const TemporaryDirectory directory;
         const std::string file = directory.Write("zklock.conf", "frob = x\n");
         return SaidBy({"inspect", "--config", file, "/l"}, 78);
       }},
  };
}

}  // namespace zklock::test

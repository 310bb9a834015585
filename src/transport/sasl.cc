#include "transport/sasl.h"

#include <poll.h>
#include <sasl/sasl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "transport/sasl_frames.h"

namespace zklock::transport {
namespace {

// An xid that the client library does not use: its xids start near the current Unix time.
constexpr std::int32_t kFirstXid = 0x7a6b7361;

/// Returns ZooKeeper's name for an error.
std::string NameOf(std::int32_t error) {
  if (error == -115) return "AUTHFAILED";
  if (error == -124) return "SESSIONCLOSEDREQUIRESASLAUTH";
  return "error " + std::to_string(error);
}

// The maximum number of bytes that a server may send before it answers the SASL request: nothing
// else has been requested.
constexpr std::size_t kMostBefore = std::size_t{1} << 20U;

[[noreturn]] void Refuse(const std::string& what) { throw Failure(what, true); }

/// Throws Failure for a refusal by the server, which gives no reason.
[[noreturn]] void RefuseAsServer(const std::string& what, const SaslOptions& options) {
  // FIPS mode is the default in ZooKeeper 3.9.
  const char* const fips_mode =
      options.mechanism == "digest-md5"
          ? "; ZooKeeper 3.9.6 and later refuse digest-md5 in FIPS mode: start the servers with "
            "-Dzookeeper.fips-mode=false, or use gssapi or TLS with a client certificate"
          : "";
  Refuse(what + fips_mode);
}

/// Reads some bytes, at least one.
using ReadSome = std::function<std::size_t(std::span<char>)>;

std::string ReadBytes(std::size_t size, const ReadSome& read_some) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) done += read_some(std::span(bytes).subspan(done));
  return bytes;
}

/// Reads a frame and its length field.
std::string ReadFrame(const ReadSome& read_some) {
  const std::string head = ReadBytes(4, read_some);
  const auto length = FrameLength(head);
  if (!length) throw Failure("answers, but not as a ZooKeeper server: wrong port?");
  return head + ReadBytes(*length, read_some);
}

std::size_t ReadFromZklock(std::span<char> buffer) {
  for (;;) {
    const ssize_t size = recv(kZklock, buffer.data(), buffer.size(), 0);
    if (size > 0) return static_cast<std::size_t>(size);
    if (size == 0 || errno != EINTR) std::exit(0);
  }
}

ReadSome From(Channel& channel) {
  return [&channel](std::span<char> buffer) {
    for (;;) {
      const Channel::Result result = channel.Read(buffer);
      if (result.state == Channel::State::kDone) return result.size;
      if (result.state == Channel::State::kEnd) {
        throw Failure("closes the connection at once: no quorum, or maxClientCnxns reached?");
      }
      WaitFor(channel, result.state);
    }
  };
}

std::string_view Body(const std::string& frame) { return std::string_view(frame).substr(4); }

/// The client side of one SASL exchange, performed by Cyrus SASL.
class Exchange {
 public:
  struct Step {
    std::string token;
    bool is_complete = false;
  };

  Exchange(const std::string& host, const SaslOptions& options) : options_(options) {
    const bool is_digest = options.mechanism == "digest-md5";
    mechanism_ = is_digest ? "DIGEST-MD5" : "GSSAPI";
    secret_.resize(sizeof(sasl_secret_t) + options.password.size());
    auto* secret = reinterpret_cast<sasl_secret_t*>(secret_.data());
    secret->len = options.password.size();
    std::memcpy(secret->data, options.password.data(), options.password.size());
    callbacks_ = {{{SASL_CB_LOG, AsCallback(OnLog), nullptr},
                   {SASL_CB_USER, AsCallback(OnUser), this},
                   {SASL_CB_AUTHNAME, AsCallback(OnUser), this},
                   {SASL_CB_PASS, AsCallback(OnPassword), this},
                   {SASL_CB_LIST_END, nullptr, nullptr}}};
    if (sasl_client_init(callbacks_.data()) != SASL_OK) Refuse("Cyrus SASL cannot be used");
    sasl_conn_t* connection = nullptr;
    // For DIGEST-MD5, ZooKeeper servers use these fixed names.
    const int made = sasl_client_new(is_digest ? "zookeeper" : options.service.c_str(),
                                     is_digest ? "zk-sasl-md5" : host.c_str(), nullptr, nullptr,
                                     callbacks_.data(), 0, &connection);
    if (made != SASL_OK) Refuse(sasl_errstring(made, nullptr, nullptr));
    connection_.reset(connection);
    // For authentication only: later data on the connection is not wrapped by SASL.
    sasl_security_properties_t properties{};
    if (sasl_setprop(connection, SASL_SEC_PROPS, &properties) != SASL_OK) {
      Refuse("Cyrus SASL cannot be limited to authentication");
    }
  }

  Step Start() {
    const char* token = nullptr;
    unsigned size = 0;
    const char* chosen = nullptr;
    const int result =
        sasl_client_start(connection_.get(), mechanism_, nullptr, &token, &size, &chosen);
    if (result == SASL_NOMECH) {
      Refuse(std::string("Cyrus SASL has no ") + mechanism_ + " mechanism: apt-get install " +
             (options_.mechanism == "gssapi" ? "libsasl2-modules-gssapi-mit" : "libsasl2-modules"));
    }
    return Take(result, token, size);
  }

  Step Continue(std::string_view challenge) {
    const char* token = nullptr;
    unsigned size = 0;
    const int result =
        sasl_client_step(connection_.get(), challenge.data(),
                         static_cast<unsigned>(challenge.size()), nullptr, &token, &size);
    return Take(result, token, size);
  }

 private:
  /// Casts to the type that Cyrus SASL uses for all callbacks. (The compiler accepts such a cast
  /// only from void (*)().)
  template <typename Function>
  static int (*AsCallback(Function* function))() {
    return reinterpret_cast<int (*)()>(reinterpret_cast<void (*)()>(function));
  }

  Step Take(int result, const char* token, unsigned size) {
    if (result != SASL_OK && result != SASL_CONTINUE) Refuse(ErrorText());
    return {token == nullptr ? std::string() : std::string(token, size), result == SASL_OK};
  }

  /// Returns the reason and the remedy. Cyrus SASL puts GSSAPI's reason in parentheses at the end:
  /// "... may provide more information (Ticket expired)".
  [[nodiscard]] std::string ErrorText() const {
    std::string detail = sasl_errdetail(connection_.get());
    const std::size_t error = detail.find("GSSAPI Error: ");
    const std::size_t begin = error == std::string::npos ? error : detail.find(" (", error);
    const std::size_t end = detail.rfind(')');
    if (begin == std::string::npos || end == std::string::npos) return detail;
    const std::string reason = detail.substr(begin + 2, end - begin - 2);
    const auto has = [&](const char* words) { return reason.find(words) != std::string::npos; };
    // The language is always English: this process sets no locale.
    const char* remedy = has("expired") || has("credentials") ? "; run kinit"
                         : has("not found in Kerberos")       ? "; see --sasl-service"
                                                              : "";
    return std::string(mechanism_) + ": " + reason + remedy;
  }

  static int OnLog(void* /*context*/, int /*level*/, const char* /*text*/) { return SASL_OK; }

  static int OnUser(void* self, int id, const char** value, unsigned* size) {
    const SaslOptions& options = static_cast<Exchange*>(self)->options_;
    *value = id == SASL_CB_AUTHNAME ? options.user.c_str() : "";
    if (size != nullptr) *size = static_cast<unsigned>(std::strlen(*value));
    return SASL_OK;
  }

  static int OnPassword(sasl_conn_t* /*connection*/, void* self, int /*id*/,
                        sasl_secret_t** secret) {
    *secret = reinterpret_cast<sasl_secret_t*>(static_cast<Exchange*>(self)->secret_.data());
    return SASL_OK;
  }

  struct Dispose {
    void operator()(sasl_conn_t* connection) const { sasl_dispose(&connection); }
  };

  const SaslOptions& options_;
  const char* mechanism_ = nullptr;
  std::vector<char> secret_;  // a sasl_secret_t
  std::array<sasl_callback_t, 5> callbacks_{};
  std::unique_ptr<sasl_conn_t, Dispose> connection_;
};

/// Sends a token and returns the token in the reply. Appends frames that arrive before the reply to
/// `others`.
std::optional<std::string> Ask(Channel& channel, std::int32_t xid, std::string_view token,
                               const SaslOptions& options, std::string& others) {
  WriteAll(channel, MakeSaslRequest(xid, token));
  for (;;) {
    const std::string frame = ReadFrame(From(channel));
    const auto reply = ParseSaslReply(Body(frame));
    if (!reply) throw Failure("sent an answer that is not ZooKeeper's");
    if (reply->xid != xid) {
      if (others.size() + frame.size() > kMostBefore) {
        throw Failure("sends much, but no answer to SASL");
      }
      others += frame;
      continue;
    }
    if (reply->error != 0) {
      RefuseAsServer("the server rejects the credentials: " + NameOf(reply->error), options);
    }
    return reply->token;
  }
}

}  // namespace

void Authenticate(Channel& channel, const std::string& host, const SaslOptions& options) {
  WriteAll(channel, ReadFrame(ReadFromZklock));
  std::string answer = ReadFrame(From(channel));
  // If the session has expired, there is nothing to authenticate.
  if (GrantsSession(Body(answer))) {
    Exchange exchange(host, options);
    Exchange::Step step = exchange.Start();
    std::int32_t xid = kFirstXid;
    for (;;) {
      const auto challenge = Ask(channel, xid++, step.token, options, answer);
      if (step.is_complete) break;
      // A server without SASL also sends a reply without a token, as if it had accepted the client.
      if (!challenge) RefuseAsServer("the server has no SASL of this mechanism", options);
      step = exchange.Continue(*challenge);
      if (step.is_complete && step.token.empty()) break;
    }
  }
  WriteAllToZklock(answer);
}

}  // namespace zklock::transport

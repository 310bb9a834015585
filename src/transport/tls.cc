#include "transport/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

namespace zklock::transport {
namespace {

template <auto kFree>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Deleter<SSL_free>>;

std::string NameText(const X509_NAME* name) {
  // The common name is shorter than the full subject name, and more familiar.
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at >= 0) {
    const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
            static_cast<std::size_t>(ASN1_STRING_length(text))};
  }
  std::array<char, 256> line{};
  X509_NAME_oneline(name, line.data(), line.size());
  return line.data();
}

std::string TimeText(const ASN1_TIME* time) {
  tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return "?";
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &fields);
  return text.data();
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

/// Returns the names and addresses that a certificate was issued for.
std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) { names.push_back(name); };
  auto* list = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
    if (name->type == GEN_DNS) {
      add({reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
           static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName))});
    } else if (name->type == GEN_IPADD) {
      add(AddressText(name->d.iPAddress));
    }
  }
  GENERAL_NAMES_free(list);
  if (names.empty()) add(NameText(X509_get_subject_name(certificate)));
  return names;
}

/// Explains what is wrong with a certificate that was issued for names other than `host`.
std::string MismatchText(X509* certificate, const std::string& host) {
  std::string all;
  for (const std::string& name : NamesOf(certificate)) {
    // An address that did not match is among these names only as a DNS name or common name.
    if (name == host) {
      return "its certificate has " + host +
             " as a DNS name, not as an IP address: issue it for IP:" + host;
    }
    all += (all.empty() ? "" : ", ") + name;
  }
  return "its certificate is for " + all + ", not for " + host +
         "; see --servers, or --tls-verify ca";
}

/// Explains what is wrong with a certificate in the server's chain.
std::string FaultOf(X509_STORE_CTX* store, const std::string& host) {
  X509* certificate = X509_STORE_CTX_get_current_cert(store);
  const int error = X509_STORE_CTX_get_error(store);
  if (certificate == nullptr) return X509_verify_cert_error_string(error);
  const std::string subject = NameText(X509_get_subject_name(certificate));
  const std::string which = X509_STORE_CTX_get_error_depth(store) == 0
                                ? "its certificate"
                                : "the certificate of its authority " + subject;
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return which + " expired on " + TimeText(X509_get0_notAfter(certificate)) + ": renew it";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return which + " is not valid before " + TimeText(X509_get0_notBefore(certificate)) +
             ": is a clock wrong?";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "its certificate (" + subject + ") is self-signed; see --tls-ca";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return which + " is from an unknown authority, " +
             NameText(X509_get_issuer_name(certificate)) + "; see --tls-ca";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return MismatchText(certificate, host);
    default:
      return which + " cannot be used: " + X509_verify_cert_error_string(error);
  }
}

[[noreturn]] void FailFile(const std::string& file, const std::string& otherwise) {
  const unsigned long error = ERR_peek_error();
  const bool is_system = ERR_GET_LIB(error) == ERR_LIB_SYS;
  throw Failure(file + ": " +
                (is_system ? std::generic_category().message(ERR_GET_REASON(error)) : otherwise));
}

/// Throws Failure if other users can access `key`. zklock also checked this when it started, but
/// that may have been long ago.
void RequirePrivate(const std::string& key) {
  struct stat status {};
  if (stat(key.c_str(), &status) != 0) return;  // OpenSSL reports why
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    throw Failure(key + ": belongs to another user, so it is not used; chown it");
  }
  if ((status.st_mode & 077) != 0) {
    throw Failure(key + ": other users can access it, so it is not used; chmod go= it");
  }
}

/// Throws Failure if an OpenSSL call failed, so that no check is skipped silently.
void Require(long is_done, const std::string& otherwise) {
  if (is_done != 1) throw Failure(otherwise);
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(std::string host, const TlsOptions& options)
      : host_(std::move(host)), context_(MakeContext(options)) {
    ssl_.reset(SSL_new(context_.get()));
    if (ssl_ == nullptr) throw Failure("OpenSSL has no memory");
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, OnVerify);
    Require(SSL_set_app_data(ssl_.get(), this), "OpenSSL has no memory");
    SetName(options.checks_name);
  }

  void Handshake(UniqueFd socket) {
    socket_ = std::move(socket);
    Require(SSL_set_fd(ssl_.get(), socket_.get()), "OpenSSL has no memory");
    for (;;) {
      ERR_clear_error();
      const int result = SSL_connect(ssl_.get());
      if (result == 1) return;
      const State wanted = Wanted(result);
      if (wanted == State::kEnd) {
        throw Failure("closes the connection in the TLS handshake: a port without TLS?");
      }
      WaitFor(*this, wanted);
    }
  }

  Result Read(std::span<char> buffer) override {
    std::size_t size = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &size);
    if (result == 1) return {State::kDone, size};
    return {Wanted(result)};
  }

  Result Write(std::span<const char> data) override {
    std::size_t size = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), data.data(), data.size(), &size);
    if (result == 1) return {State::kDone, size};
    return {Wanted(result)};
  }

  void Close() override { SSL_shutdown(ssl_.get()); }
  [[nodiscard]] int fd() const override { return socket_.get(); }

 private:
  /// Sets the name to request from the server and, if `checks_name`, the name that the certificate
  /// must have.
  void SetName(bool checks_name) {
    const std::string fault =
        "'" + host_ + "' is not a name that a certificate can have; see --servers";
    // OpenSSL treats an empty name as no name, and checks nothing.
    Require(!host_.empty(), fault);
    const bool is_address = host_.find(':') != std::string::npos || IsIpv4();
    if (!is_address) Require(SSL_set_tlsext_host_name(ssl_.get(), host_.c_str()), fault);
    if (!checks_name) return;
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl_.get());
    Require(is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, host_.c_str())
                       : X509_VERIFY_PARAM_set1_host(param, host_.data(), host_.size()),
            fault);
  }

  Context MakeContext(const TlsOptions& options) {
    Context context(SSL_CTX_new(TLS_client_method()));
    if (context == nullptr) throw Failure("OpenSSL has no memory");
    Require(SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION), "OpenSSL has no TLS 1.2");
    SSL_CTX_set_mode(context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (options.ca.empty()) {
      Require(SSL_CTX_set_default_verify_paths(context.get()),
              "the system's authorities cannot be read; see --tls-ca");
    } else if (SSL_CTX_load_verify_file(context.get(), options.ca.c_str()) != 1) {
      FailFile(options.ca, "has no certificate in PEM; see --tls-ca");
    }
    has_certificate_ = !options.cert.empty();
    SSL_CTX_set_cert_cb(context.get(), OnCertificateWanted, this);
    if (!has_certificate_) return context;
    RequirePrivate(options.key);
    // Without this, OpenSSL would ask for a passphrase on the terminal.
    SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return -1; });
    if (SSL_CTX_use_certificate_chain_file(context.get(), options.cert.c_str()) != 1) {
      FailFile(options.cert, "has no certificate in PEM; see --tls-cert");
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      FailFile(options.key, ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH
                                ? "is not the key of " + options.cert + "; see --tls-key"
                                : "has no key in PEM without a passphrase; see --tls-key");
    }
    return context;
  }

  [[nodiscard]] bool IsIpv4() const {
    in_addr address{};
    return inet_pton(AF_INET, host_.c_str(), &address) == 1;
  }

  static int OnCertificateWanted(SSL* /*ssl*/, void* self) {
    static_cast<TlsChannel*>(self)->certificate_wanted_ = true;
    return 1;
  }

  static int OnVerify(int is_valid, X509_STORE_CTX* store) {
    auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* self = static_cast<TlsChannel*>(SSL_get_app_data(ssl));
    if (is_valid == 0) self->fault_ = FaultOf(store, self->host_);
    return is_valid;
  }

  /// Returns the state after a failed call: the readiness to wait for, or kEnd. Throws Failure if
  /// repeating the call cannot help.
  State Wanted(int result) const {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return State::kWantsRead;
      case SSL_ERROR_WANT_WRITE:
        return State::kWantsWrite;
      case SSL_ERROR_ZERO_RETURN:
        return State::kEnd;
      case SSL_ERROR_SYSCALL:
        if (errno == 0 || errno == EPIPE || errno == ECONNRESET) return State::kEnd;
        throw Failure(std::generic_category().message(errno));
      default:
        break;
    }
    if (!fault_.empty()) throw Failure(fault_);
    const unsigned long error = ERR_peek_error();
    const int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) return State::kEnd;
    throw Failure(TextOfReason(reason, ERR_reason_error_string(error)));
  }

  [[nodiscard]] std::string TextOfReason(int reason, const char* text) const {
    switch (reason) {
      case SSL_R_WRONG_VERSION_NUMBER:
      case SSL_R_HTTP_REQUEST:
      case SSL_R_PACKET_LENGTH_TOO_LONG:
        return "does not answer in TLS: a port without TLS?";
      case SSL_R_UNSUPPORTED_PROTOCOL:
      case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return "speaks no TLS of version 1.2 or newer: see its ssl.enabledProtocols";
      case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        if (certificate_wanted_ && !has_certificate_) {
          return "requires a client certificate; see --tls-cert";
        }
        break;
      default:
        break;
    }
    const std::string what = text == nullptr ? "unknown error" : text;
    // A reason above 1000 is an alert that the server sent.
    if (reason > SSL_AD_REASON_OFFSET && certificate_wanted_) {
      return "rejects the client certificate or the handshake: " + what + "; see --tls-cert";
    }
    return "TLS: " + what;
  }

  UniqueFd socket_;
  const std::string host_;
  bool has_certificate_ = false;
  bool certificate_wanted_ = false;
  std::string fault_;  // what is wrong with the server's certificate; empty if no fault was found
  Context context_;
  Connection ssl_;
};

}  // namespace

std::unique_ptr<Channel> OpenTls(const std::function<UniqueFd()>& connect, const std::string& host,
                                 const TlsOptions& options) {
  auto channel = std::make_unique<TlsChannel>(host, options);
  channel->Handshake(connect());
  return channel;
}

}  // namespace zklock::transport

#include "lock/data/contender_data.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lock/data/json_fields.h"

namespace zklock::lock {
namespace {

using nlohmann::json;

// Far above any pid that the kernel allows, and still fits in an int.
constexpr std::int64_t kLargestPid = std::numeric_limits<std::int32_t>::max();

template <typename T>
void Put(json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}

void Put(json& object, const char* name, const std::optional<std::string>& value,
         std::size_t most) {
  // Cutting invalid UTF-8 may leave nothing.
  const std::string_view kept =
      CutText(value ? std::string_view(*value) : std::string_view(), most);
  if (!kept.empty()) object[name] = kept;
}

/// Returns as many of the innermost paths as there is room for.
std::vector<std::string> Innermost(const std::vector<std::string>& paths) {
  constexpr std::size_t kMostPaths = 8;
  constexpr std::size_t kMostBytes = 1024;
  std::vector<std::string> kept;
  std::size_t bytes = 0;
  for (auto path = paths.rbegin(); path != paths.rend() && kept.size() < kMostPaths; ++path) {
    bytes += DumpJson(json(*path)).size();
    if (bytes > kMostBytes) break;
    kept.insert(kept.begin(), *path);
  }
  return kept;
}

std::string Format(const ContenderData& data, std::size_t most_text, bool with_any) {
  // Leaves room for the other fields besides two long texts; real host and user names are shorter.
  constexpr std::size_t kMostName = 64;
  json object = json::object();
  Put(object, "version", data.version);
  if (data.mode) object["mode"] = protocol::ModeName(*data.mode);
  Put(object, "host", data.host, kMostName);
  Put(object, "user", data.user, kMostName);
  Put(object, "pid", data.pid);
  Put(object, "bootId", data.boot_id, kMostName);
  Put(object, "startTime", data.start_time);
  Put(object, "command", data.command, most_text);
  Put(object, "label", data.label, most_text);
  if (with_any) object["any"] = data.any;
  // Without `any`, `under` would suggest that all contenders of the run must acquire their locks
  // before the locks that the run is under can be released.
  const std::vector<std::string> under = Innermost(data.under);
  if (!under.empty() && (with_any || data.any.empty())) object["under"] = under;
  Put(object, "pidNamespace", data.pid_namespace);
  Put(object, "contained", data.contained);
  if (data.owner) {
    object["owner"] = {{"pid", data.owner->pid},
                       {"startTime", data.owner->start_time},
                       {"socket", data.owner->socket}};
  }
  if (data.preempts) object["preempts"] = true;
  if (data.take > 1) object["take"] = data.take;
  if (!data.reserve.empty()) {
    object["reserve"] = data.reserve;
    Put(object, "reason", std::optional(data.reserve_reason), std::min(most_text, kMostReason));
  }
  if (data.reservation) {
    json& reservation = object["reservation"] = json::object();
    reservation["id"] = data.reservation->id;
    Put(reservation, "reason", std::optional(data.reservation->reason),
        std::min(most_text, kMostReason));
    if (data.reservation->lasts) reservation["for"] = data.reservation->lasts->count();
    reservation["token"] = data.reservation->token;
  }
  if (data.release_request) {
    json& request = object["revoke"] = json::object();
    Put(request, "by", std::optional(data.release_request->by), std::min(most_text, 2 * kMostName));
    Put(request, "reason", std::optional(data.release_request->reason),
        std::min(most_text, kMostReason));
    if (data.release_request->only_waiting) request["onlyWaiting"] = true;
    if (data.release_request->forced) request["forced"] = true;
  }
  return DumpJson(object);
}

std::optional<bool> Boolean(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::vector<std::string> Words(const json& object, const char* name) {
  std::vector<std::string> words;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return words;
  for (const json& word : *found) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

std::optional<OwnerData> ReadOwner(const json& object) {
  // No socket has a longer name: see unix(7).
  constexpr std::size_t kLongestSocket = 107;
  const auto found = object.find("owner");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  const auto pid = NumberField(*found, "pid", 1, kLargestPid);
  const auto start = NumberField(*found, "startTime", 0, std::numeric_limits<std::int64_t>::max());
  std::string socket = TextField(*found, "socket").value_or("");
  if (!pid || !start || socket.size() > kLongestSocket) return std::nullopt;
  return OwnerData{*pid, static_cast<std::uint64_t>(*start), std::move(socket)};
}

std::string ReadReservationId(const json& object, const char* name) {
  const std::string id = TextField(object, name).value_or("");
  return protocol::IsReservationId(id) ? id : "";
}

std::optional<protocol::Reservation> ReadReservation(const json& object) {
  const auto found = object.find("reservation");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  protocol::Reservation reservation{.id = ReadReservationId(*found, "id"),
                                    .reason = TextField(*found, "reason").value_or("")};
  const auto token = NumberField(*found, "token", 1, std::numeric_limits<std::int64_t>::max());
  if (reservation.id.empty() || !token) return std::nullopt;
  reservation.token = *token;
  if (found->contains("for")) {
    const auto lasts = NumberField(*found, "for", 1, protocol::kLongestReservation.count());
    if (!lasts) return std::nullopt;
    reservation.lasts = std::chrono::milliseconds(*lasts);
  }
  return reservation;
}

std::optional<ReleaseRequest> ReadReleaseRequest(const json& object) {
  const auto found = object.find("revoke");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  return ReleaseRequest{.by = TextField(*found, "by").value_or(""),
                        .reason = TextField(*found, "reason").value_or(""),
                        .only_waiting = Boolean(*found, "onlyWaiting").value_or(false),
                        .forced = Boolean(*found, "forced").value_or(false)};
}

}  // namespace

std::string FormatContenderData(const ContenderData& data) {
  // Texts are not truncated below this length to make room for the list of other LOCKs: the list is
  // omitted instead.
  constexpr std::size_t kLeastText = 64;
  std::size_t most_text = kMostContenderData / 2;
  // A truncated list would look complete.
  bool with_any = !data.any.empty() && data.any.size() <= kMostAny;
  std::string text = Format(data, most_text, with_any);
  // Escapes can make a text six times as long: cut until it fits. The fields that are not cut are
  // short enough.
  while (text.size() > kMostContenderData && most_text > 0) {
    most_text /= 2;
    if (with_any && most_text < kLeastText) {
      with_any = false;
      most_text = kMostContenderData / 2;
    }
    text = Format(data, most_text, with_any);
  }
  return text;
}

std::optional<ContenderData> ParseContenderData(std::string_view text) {
  if (text.size() > kMostContenderData) return std::nullopt;
  // The parser rejects invalid UTF-8, but dump replaces it: convert to a JSON string first.
  const std::string valid = json::parse(DumpJson(json(text))).get<std::string>();
  const json object = json::parse(valid, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;

  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  ContenderData data;
  data.version = NumberField(object, "version", 0, kLargest);
  if (const auto word = TextField(object, "mode")) data.mode = protocol::ParseMode(*word);
  data.host = TextField(object, "host");
  data.user = TextField(object, "user");
  data.pid = NumberField(object, "pid", 1, kLargestPid);
  data.boot_id = TextField(object, "bootId");
  data.start_time = NumberField(object, "startTime", 0, kLargest);
  data.command = TextField(object, "command");
  data.label = TextField(object, "label");
  data.under = Words(object, "under");
  data.any = Words(object, "any");
  if (data.any.size() > kMostAny) data.any.clear();
  data.pid_namespace = NumberField(object, "pidNamespace", 0, kLargest);
  data.contained = Boolean(object, "contained");
  data.owner = ReadOwner(object);
  data.release_request = ReadReleaseRequest(object);
  data.preempts = Boolean(object, "preempts").value_or(false);
  data.take =
      static_cast<std::size_t>(NumberField(object, "take", 1, std::int64_t{kMostTake}).value_or(1));
  data.reserve = ReadReservationId(object, "reserve");
  if (!data.reserve.empty()) data.reserve_reason = TextField(object, "reason").value_or("");
  data.reservation = ReadReservation(object);
  return data;
}

std::string AddReleaseRequest(std::string_view data, const ReleaseRequest& request) {
  ContenderData changed = ParseContenderData(data).value_or(ContenderData{});
  const bool is_asked = changed.release_request && !changed.release_request->forced;
  if (!request.forced || !is_asked) changed.release_request = request;
  return FormatContenderData(changed);
}

std::optional<ReleaseRequest> FindReleaseRequest(std::string_view data) {
  if (data == kCuratorRevoke) return ReleaseRequest{.program = protocol::Program::kCurator};
  // Every holder reads its own data once, and usually finds no request: skip the parser then. (A
  // field's name may also be written with escapes.)
  if (data.find("revoke") == data.npos && data.find('\\') == data.npos) return std::nullopt;
  const auto parsed = ParseContenderData(data);
  return parsed ? parsed->release_request : std::nullopt;
}

}  // namespace zklock::lock

#include "lock/data/reserved.h"

#include <algorithm>

#include "lock/data/contender_data.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using std::chrono::milliseconds;

std::optional<Reserved> FindReservation(std::string_view name, const std::string& data,
                                        const zookeeper::NodeStat& stat) {
  if (stat.ephemeral_owner != 0) return std::nullopt;
  const auto contender = protocol::ParseContenderName(name);
  if (!contender || !contender->reserves) return std::nullopt;
  const auto parsed = ParseContenderData(data);
  if (!parsed || !parsed->reservation) return std::nullopt;
  const protocol::Reservation& reservation = *parsed->reservation;
  if (reservation.token >= stat.created_zxid) return std::nullopt;
  Reserved reserved{.reservation = reservation,
                    .mode = contender->mode(),
                    .take = parsed->take,
                    .host = parsed->host.value_or(""),
                    .user = parsed->user.value_or(""),
                    .label = parsed->label.value_or(""),
                    .since = milliseconds(stat.created_ms),
                    .created_zxid = stat.created_zxid,
                    .version = stat.version};
  // Kazoo's names do not distinguish a writer from an exclusive contender.
  const bool is_kazoos = contender->mark == protocol::Mark::kKazooLock;
  if (is_kazoos && parsed->mode == protocol::Mode::kWrite) reserved.mode = *parsed->mode;
  if (reservation.lasts) reserved.until = reserved.since + *reservation.lasts;
  return reserved;
}

bool HadEnded(const Reserved& reserved, const Ticket& own) {
  const auto end = reserved.end();
  return end && own.token > reserved.created_zxid && own.created >= *end;
}

milliseconds LatestServerTimeAt(TimePoint moment, const Reserved& reserved, Ticket own) {
  // The reservation was made after our contender, so it has not existed for longer than our
  // contender.
  if (own.token < reserved.created_zxid) own.created = std::min(own.created, reserved.since);
  return own.LatestServerTimeAt(moment);
}

protocol::ReleaseRecord RecordOf(std::string_view name, const Reserved& reserved) {
  return {.contender = std::string(name),
          .mode = reserved.mode,
          .token = reserved.reservation.token,
          .host = reserved.host,
          .is_reservation = true};
}

bool LeavesRecord(const Reserved& reserved, bool was_first) {
  return was_first && reserved.mode != protocol::Mode::kRead;
}

RunRecord RunOf(std::string_view name, const Reserved& reserved) {
  return {.began = reserved.since,
          .host = reserved.host,
          .user = reserved.user,
          .label = reserved.label,
          .token = reserved.reservation.token,
          .mode = reserved.mode,
          .contender = std::string(name),
          .id = reserved.reservation.id,
          .reason = reserved.reservation.reason};
}

std::string StampName(const zookeeper::Store& store) {
  return kStampPrefix + std::to_string(static_cast<std::uint64_t>(store.session_id()));
}

std::string FormatReservation(std::string_view contender,
                              const protocol::ReservationRequest& request, std::int64_t token) {
  ContenderData data = ParseContenderData(contender).value_or(ContenderData{});
  data.reserve.clear();
  data.reserve_reason.clear();
  data.contained.reset();  // a reservation has no command
  data.reservation = {
      .id = request.id, .reason = request.reason, .lasts = request.lasts, .token = token};
  return FormatContenderData(data);
}

std::string Rewritten(std::string_view old, const Reserved& reserved) {
  ContenderData data = ParseContenderData(old).value_or(ContenderData{});
  if (data.reservation) {
    data.reservation->lasts = reserved.reservation.lasts;
    data.reservation->reason = reserved.reservation.reason;
  }
  if (!reserved.label.empty()) data.label = reserved.label;
  return FormatContenderData(data);
}

}  // namespace zklock::lock

#include "core/io/remote/sftp_client.h"

#include <fmt/core.h>

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "core/base/progress.h"
#include "core/base/stop_requests.h"
#include "core/io/remote/remote_environment.h"
#include "core/io/remote/remote_traffic.h"

namespace shw {
namespace {

// OpenSSH's limit for a packet.
constexpr std::uint32_t kMaxSftpPacket = 256 * 1024;
// 256 small requests, such as those for the headers of all shards, take one round trip. 256 reads
// of 128 KiB are more than ssh's window of 2 MiB lets through at once.
constexpr std::size_t kSftpInFlight = 256;
constexpr int kSftpStallSeconds = 30;
// Long, because the user may have to type a password.
constexpr int kSftpLoginSeconds = 180;

constexpr std::uint32_t kSftpVersion = 3;

}  // namespace

std::string sftp_status_text(std::uint32_t status) {
  if (status == kSftpEndOfFile) return "ends too early";
  if (status == kSftpNoSuchFile) return "there is no such file or folder";
  if (status == kSftpDenied) return "permission denied";
  return fmt::format("the server refuses (SFTP status {})", status);
}

tl::unexpected<Error> SftpClient::broken(const std::string& why) {
  is_broken_ = true;
  return fail(ErrorKind::kIo, why, {"ssh://" + place_.host}, ssh_login_advice(place_));
}

Result<std::shared_ptr<SftpClient>> SftpClient::connect(const RemotePlace& place) {
  std::vector<std::string> options = {"-s"};
  if (compresses_ssh.load()) options.emplace_back("-C");
  std::vector<std::string> words = ssh_arguments(place, options);
  words.emplace_back("sftp");
  SHW_TRY(SshProcess process, SshProcess::start(words));
  std::shared_ptr<SftpClient> client(new SftpClient(std::move(process), place));
  SHW_CHECK(client->begin());
  return client;
}

Status SftpClient::begin() {
  SftpWriter body;
  body.byte(SftpType::kInit).number32(kSftpVersion);
  SHW_CHECK(send(SftpWriter().text(body.bytes()).bytes()));
  SHW_TRY(const Bytes packet, receive_packet(kSftpLoginSeconds));
  SftpReader reader(BytesView(packet).subspan(1));
  if (packet[0] == std::byte(SftpType::kVersion) && reader.number32() >= kSftpVersion) return {};
  return broken("the host does not support SFTP version 3");
}

Status SftpClient::send(const std::string& packet) {
  if (!process_.is_own()) return broken("the ssh connection belongs to the parent process");
  count_request();
  if (send_to_child(process_.to(), packet)) return {};
  return broken("the ssh connection ended");
}

// Receives until `incoming_` has `length` bytes. What came before a stop stays there, so that the
// next call goes on with the same packet.
Status SftpClient::receive(std::size_t length, int seconds) {
  constexpr int kPollsPerSecond = 10;
  const StopSignal stop;
  int waited = 0;
  while (incoming_.size() < length) {
    pollfd wanted{process_.from(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, 1000 / kPollsPerSecond);
    if (stop.is_set()) return cancelled_error();
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && ++waited < seconds * kPollsPerSecond) continue;
    if (ready <= 0) return broken(fmt::format("the host was silent for {} s", seconds));
    const std::size_t before = incoming_.size();
    incoming_.resize(length);
    const ssize_t got = ::read(process_.from(), incoming_.data() + before, length - before);
    const int code = errno;
    incoming_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (code == EINTR || code == EAGAIN)) continue;
    if (got <= 0) return broken("ssh ended before the host answered");
    count_received_bytes(static_cast<std::uint64_t>(got));
    waited = 0;
  }
  return {};
}

Result<Bytes> SftpClient::receive_packet(int seconds) {
  constexpr std::size_t kHead = 4;
  SHW_CHECK(receive(kHead, seconds));
  const std::uint32_t length = SftpReader(BytesView(incoming_).first(kHead)).number32();
  // The usual cause is a shell that prints text at login before the protocol starts.
  if (length < 5 || length > kMaxSftpPacket)
    return broken("the host sends something that is not SFTP");
  SHW_CHECK(receive(kHead + length, seconds));
  Bytes packet(incoming_.begin() + kHead, incoming_.end());
  incoming_.clear();
  return packet;
}

Status SftpClient::exchange(std::vector<SftpRequest> requests, const Take& take) {
  std::lock_guard lock(guard_);
  if (is_broken()) return broken("the ssh connection ended");
  const int stall = stall_seconds(kSftpStallSeconds);
  std::unordered_map<std::uint32_t, std::size_t> asked;
  std::size_t next = 0;
  Status refusal;
  while ((refusal && next < requests.size()) || !asked.empty()) {
    while (refusal && next < requests.size() && in_flight_.size() < kSftpInFlight) {
      SftpWriter packet;
      packet.byte(requests[next].type).number32(++last_id_);
      SHW_CHECK(send(SftpWriter().text(packet.bytes() + requests[next].body).bytes()));
      in_flight_.insert(last_id_);
      asked[last_id_] = next++;
    }
    SHW_TRY(const Bytes packet, receive_packet(stall));
    SftpReader reader(BytesView(packet).subspan(1));
    const std::uint32_t id = reader.number32();
    if (in_flight_.erase(id) == 0) return broken("the host answers what was not asked");
    const auto found = asked.find(id);
    if (found == asked.end()) continue;  // a late answer, to a call that was cancelled
    const std::size_t index = found->second;
    asked.erase(found);
    SftpAnswer answer{static_cast<SftpType>(packet[0]), 0, {packet.begin() + 5, packet.end()}};
    if (answer.type == SftpType::kStatus) answer.status = SftpReader(answer.body).number32();
    if (refusal) refusal = take(index, answer, requests);
  }
  return refusal;
}

Result<SftpAnswer> SftpClient::ask(SftpRequest request) {
  SftpAnswer own;
  SHW_CHECK(
      exchange({std::move(request)},
               [&](std::size_t, const SftpAnswer& answer, std::vector<SftpRequest>&) -> Status {
                 own = answer;
                 return {};
               }));
  return own;
}

}  // namespace shw

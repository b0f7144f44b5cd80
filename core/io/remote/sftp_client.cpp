#include "core/io/remote/sftp_client.h"

#include <fmt/core.h>

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "core/base/progress.h"
#include "core/base/stop_requests.h"
#include "core/io/remote/remote_traffic.h"

namespace shw {
namespace {

// OpenSSH's limit for a packet.
constexpr std::uint32_t kMostSftpPacket = 256 * 1024;
// 256 small requests, such as those for the headers of all shards, take one round trip. 256 reads
// of 128 KiB are more than ssh's window of 2 MiB lets through at once.
constexpr std::size_t kSftpInFlight = 256;
constexpr int kSftpStallSeconds = 30;
// Long, because the user may have to type a password.
constexpr int kSftpLoginSeconds = 180;

constexpr std::uint32_t kSftpVersion = 3;

}  // namespace

std::string sftp_status_words(std::uint32_t status) {
  if (status == kSftpEndOfFile) return "ends too early";
  if (status == kSftpNoSuchFile) return "there is no such file or folder";
  if (status == kSftpDenied) return "permission denied";
  return fmt::format("the server refuses (SFTP status {})", status);
}

tl::unexpected<Error> SftpClient::broken(const std::string& why) const {
  return fail(ErrorKind::kIo, why, {"ssh://" + host_},
              "Try `ssh " + host_ + " true`: it must work without a question.");
}

Result<std::shared_ptr<SftpClient>> SftpClient::connect(const RemotePlace& place) {
  std::vector<std::string> options = {"-s"};
  if (compresses_ssh.load()) options.emplace_back("-C");
  std::vector<std::string> words = ssh_arguments(place, options);
  words.emplace_back("sftp");
  SHW_TRY(SshProcess process, SshProcess::start(words));
  std::shared_ptr<SftpClient> client(new SftpClient(std::move(process), place.host));
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
  return broken("the host speaks no SFTP of version 3");
}

Status SftpClient::send(const std::string& packet) {
  if (!process_.is_own()) return broken("the connection of ssh is that of the parent process");
  count_request();
  std::string_view left = packet;
  while (!left.empty()) {
    const ssize_t sent = ::write(process_.to(), left.data(), left.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return broken("the connection of ssh has ended");
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Status SftpClient::receive(std::span<std::byte> out, int seconds) {
  const unsigned stops = stop_requests.load();
  int waited = 0;
  while (!out.empty()) {
    pollfd wanted{process_.from(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, 1000);
    if (stop_requests.load() != stops) return cancelled_error();
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && ++waited < seconds) continue;
    if (ready <= 0) return broken(fmt::format("the host was silent for {} s", waited));
    const ssize_t got = ::read(process_.from(), out.data(), out.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return broken("ssh has ended before the host answered");
    count_received_bytes(static_cast<std::uint64_t>(got));
    out = out.subspan(static_cast<std::size_t>(got));
    waited = 0;
  }
  return {};
}

Result<Bytes> SftpClient::receive_packet(int seconds) {
  std::array<std::byte, 4> head{};
  SHW_CHECK(receive(head, seconds));
  const std::uint32_t length = SftpReader(head).number32();
  // The usual cause is a shell that prints text at login before the protocol starts.
  if (length < 5 || length > kMostSftpPacket)
    return broken("the host sends something that is not SFTP");
  Bytes packet(length);
  SHW_CHECK(receive(packet, seconds));
  return packet;
}

Status SftpClient::exchange(std::vector<SftpRequest> requests, const Take& take) {
  std::lock_guard lock(guard_);
  if (is_broken_) return broken("the connection of ssh has ended");
  std::unordered_map<std::uint32_t, std::size_t> in_flight;
  std::size_t next = 0;
  // Set until all answers have arrived: after an early return, late answers would be taken for
  // answers to the next call.
  is_broken_ = true;
  while (next < requests.size() || !in_flight.empty()) {
    while (next < requests.size() && in_flight.size() < kSftpInFlight) {
      SftpWriter packet;
      packet.byte(requests[next].type).number32(++last_id_);
      SHW_CHECK(send(SftpWriter().text(packet.bytes() + requests[next].body).bytes()));
      in_flight[last_id_] = next++;
    }
    SHW_TRY(const Bytes packet, receive_packet(kSftpStallSeconds));
    SftpReader reader(BytesView(packet).subspan(1));
    const auto found = in_flight.find(reader.number32());
    if (found == in_flight.end()) return broken("the host answers what was not asked");
    const std::size_t index = found->second;
    in_flight.erase(found);
    SftpAnswer answer{static_cast<SftpType>(packet[0]), 0, {packet.begin() + 5, packet.end()}};
    if (answer.type == SftpType::kStatus) answer.status = SftpReader(answer.body).number32();
    SHW_CHECK(take(index, answer, requests));
  }
  is_broken_ = false;
  return {};
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

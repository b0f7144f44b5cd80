// A client of SFTP version 3 over the pipes of `ssh -s HOST sftp`.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/io/remote/sftp_packet.h"
#include "core/io/remote/ssh_process.h"

namespace shw {

struct SftpRequest {
  SftpType type = SftpType::kStat;
  std::string body;  // without the request number
};

struct SftpAnswer {
  SftpType type = SftpType::kStatus;
  std::uint32_t status = 0;  // only for kStatus
  Bytes body;                // without the request number
};

class SftpClient {
 public:
  static Result<std::shared_ptr<SftpClient>> connect(const RemotePlace& place);

  // Sends all requests, many in flight, and calls `take` for each answer in order of arrival.
  // `take` may append further requests. Thread-safe: calls are serialised.
  using Take = std::function<Status(std::size_t index, const SftpAnswer& answer,
                                    std::vector<SftpRequest>& more)>;
  Status exchange(std::vector<SftpRequest> requests, const Take& take);
  // Sends a single request.
  Result<SftpAnswer> ask(SftpRequest request);

 private:
  SftpClient(SshProcess process, std::string host)
      : process_(std::move(process)), host_(std::move(host)) {}
  Status begin();
  Status send(const std::string& packet);
  Status receive(std::span<std::byte> out, int seconds);
  Result<Bytes> receive_packet(int seconds);
  tl::unexpected<Error> broken(const std::string& why) const;

  SshProcess process_;
  std::string host_;
  std::mutex guard_;
  std::uint32_t last_id_ = 0;
  bool is_broken_ = false;
};

// Text for a status: "no such file", "permission denied", ...
std::string sftp_status_words(std::uint32_t status);

}  // namespace shw

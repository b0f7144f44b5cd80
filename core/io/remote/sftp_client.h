// A client of SFTP version 3 over the pipes of `ssh -s HOST sftp`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
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
  // `take` may append further requests; after its first error it is not called again, and the
  // error is returned. Thread-safe: calls are serialised.
  using Take = std::function<Status(std::size_t index, const SftpAnswer& answer,
                                    std::vector<SftpRequest>& more)>;
  Status exchange(std::vector<SftpRequest> requests, const Take& take);
  // Sends a single request.
  Result<SftpAnswer> ask(SftpRequest request);
  // True if the connection is lost, or if this process was forked after it was opened: parent and
  // child would take each other's answers. A cancelled call does not break the connection.
  bool is_broken() const { return is_broken_ || !process_.is_own(); }

 private:
  SftpClient(SshProcess process, RemotePlace place)
      : process_(std::move(process)), place_(std::move(place)) {}
  Status begin();
  Status send(const std::string& packet);
  Status receive(std::size_t length, int seconds);
  Result<Bytes> receive_packet(int seconds);
  tl::unexpected<Error> broken(const std::string& why);

  SshProcess process_;
  RemotePlace place_;
  std::mutex guard_;
  std::uint32_t last_id_ = 0;
  std::set<std::uint32_t> in_flight_;  // ids of requests without an answer, of ended calls too
  Bytes incoming_;                     // the beginning of the next packet
  std::atomic<bool> is_broken_ = false;
};

// Text for a status: "no such file", "permission denied", ...
std::string sftp_status_text(std::uint32_t status);

}  // namespace shw

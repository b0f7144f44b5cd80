// NCCL's own library on this card: a single worker, set up and shut down up to a hundred times.
#include "gpu/nccl_transport.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "../nccl/to_itself.h"
#include "core/cluster/loopback.h"
#include "device.h"

namespace shw::test {
namespace {

constexpr int kLives = 100;
// Each time takes from milliseconds to seconds, by library and machine, so slow ones are repeated
// less often.
constexpr double kSeconds = 25;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Half of them end with an abort.
Status live_once(const NcclLibrary& nccl, Transport& control, bool is_aborted) {
  SHW_TRY(auto stage, cuda_staging_buffer(0));
  SHW_TRY(auto transport, open_nccl(nccl, std::move(stage), control, {}));
  SHW_CHECK(transport->wait({"nothing", std::chrono::seconds(10)}));
  if (is_aborted) transport->abort({ErrorKind::kCancelled, "the life is over"});
  return {};
}

}  // namespace

bool check_nccl(const std::string& file) {
  auto nccl = load_nccl(file);
  if (!nccl) {
    std::printf("NCCL: none (%s)\n", nccl.error().message.c_str());
    return true;  // NCCL is often missing
  }
  for (std::size_t bytes : {std::size_t{256}, std::size_t{1} << 20, std::size_t{256} << 20}) {
    const auto begin = Clock::now();
    auto stage = cuda_staging_buffer(0);
    const Status moved =
        stage ? send_to_itself(*nccl, **stage, bytes) : tl::unexpected<Error>(stage.error());
    if (moved) {
      std::printf("%zu bytes to itself: right after %.1f s\n", bytes, since(begin));
      std::fflush(stdout);
      continue;
    }
    std::printf("%zu bytes to itself: %s\n", bytes, moved.error().message.c_str());
    return false;
  }
  std::vector<double> seconds;
  const auto first = Clock::now();
  for (int life = 0; life < kLives && since(first) < kSeconds; ++life) {
    const auto begin = Clock::now();
    const Status ended = run_on_threads(
        1, {}, [&](Transport& control) { return live_once(*nccl, control, life % 2 == 1); })[0];
    seconds.push_back(since(begin));
    if (ended) continue;
    std::printf("NCCL %s, life %d: %s\n", nccl_version_text(nccl->version).c_str(), life,
                ended.error().message.c_str());
    return false;
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("| NCCL %s, one rank, %zu lives | median %.1f ms | worst %.1f ms |\n",
              nccl_version_text(nccl->version).c_str(), seconds.size(),
              seconds[seconds.size() / 2] * 1e3, seconds.back() * 1e3);
  return true;
}

}  // namespace shw::test

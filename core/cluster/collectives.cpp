#include "core/cluster/collectives.h"

#include <fmt/core.h>

#include "core/base/checked.h"

namespace shw {
namespace {

using Sizes = std::vector<std::uint64_t>;

std::span<std::byte> bytes_of(std::uint64_t& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

// Reports an error of this rank to the other ranks, and returns it.
template <class T>
Result<T> abort_with(Transport& transport, Error error) {
  transport.abort(error);
  return tl::unexpected<Error>(std::move(error));
}

// Exchanges the number of bytes that each rank will send to each other rank.
Result<Sizes> exchange_sizes(Transport& transport, Sizes own, const WaitStep& step) {
  Sizes sizes(own.size());
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    auto at = static_cast<std::size_t>(peer);
    SHW_CHECK(transport.receive(peer, Tag::kSizes, bytes_of(sizes[at])));
    SHW_CHECK(transport.send(peer, Tag::kSizes, bytes_of(own[at])));
  }
  SHW_CHECK(transport.wait(step));
  return sizes;
}

Error over_limit_error(const WaitStep& step, int peer, std::uint64_t size, std::uint64_t most) {
  return {ErrorKind::kIo, fmt::format("in `{}` worker {} announced {} bytes, and at most {} are "
                                      "taken",
                                      step.name, peer, size, most)};
}

// Exchanges one message per pair of ranks, if not empty; `to(peer)` is the message to `peer`.
template <class To>
Result<std::vector<Bytes>> exchange_with(Transport& transport, To to, std::uint64_t most,
                                         const WaitStep& step) {
  const auto count = static_cast<std::size_t>(transport.size());
  Sizes own(count);
  for (int peer = 0; peer < transport.size(); ++peer)
    own[static_cast<std::size_t>(peer)] = to(peer).size();
  SHW_TRY(Sizes sizes, exchange_sizes(transport, std::move(own), step));
  std::vector<Bytes> come(count);
  std::uint64_t all = 0;
  for (int peer = 0; peer < transport.size(); ++peer) {
    const std::uint64_t size = sizes[static_cast<std::size_t>(peer)];
    auto sum = checked_add(all, size);
    if (!sum || *sum > most)
      return abort_with<std::vector<Bytes>>(transport, over_limit_error(step, peer, size, most));
    all = *sum;
  }
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    Bytes& message = come[static_cast<std::size_t>(peer)];
    message.resize(sizes[static_cast<std::size_t>(peer)]);
    if (!message.empty()) SHW_CHECK(transport.receive(peer, Tag::kBytes, message));
    if (!to(peer).empty()) SHW_CHECK(transport.send(peer, Tag::kBytes, to(peer)));
  }
  SHW_CHECK(transport.wait(step));
  return come;
}

}  // namespace

Status barrier(Transport& transport, const WaitStep& step) {
  SHW_TRY([[maybe_unused]] Sizes none,
          exchange_sizes(transport, Sizes(static_cast<std::size_t>(transport.size())), step));
  return {};
}

Result<Bytes> broadcast(Transport& transport, int root, BytesView own, std::uint64_t most,
                        const WaitStep& step) {
  const BytesView nothing;
  const bool is_root = transport.rank() == root;
  SHW_TRY(auto come, exchange_with(
                         transport, [&](int) { return is_root ? own : nothing; }, most, step));
  if (is_root) return Bytes(own.begin(), own.end());
  return std::move(come[static_cast<std::size_t>(root)]);
}

Result<std::vector<Bytes>> exchange(Transport& transport, std::vector<Bytes> to_each,
                                    std::uint64_t most, const WaitStep& step) {
  if (to_each.size() != static_cast<std::size_t>(transport.size())) {
    return abort_with<std::vector<Bytes>>(
        transport, {ErrorKind::kUsage, fmt::format("in `{}` there are {} messages for {} workers",
                                                   step.name, to_each.size(), transport.size())});
  }
  auto to = [&](int peer) { return BytesView(to_each[static_cast<std::size_t>(peer)]); };
  SHW_TRY(auto come, exchange_with(transport, to, most, step));
  auto self = static_cast<std::size_t>(transport.rank());
  come[self] = std::move(to_each[self]);
  return come;
}

Result<std::vector<Bytes>> all_gather(Transport& transport, Bytes own, std::uint64_t most,
                                      const WaitStep& step) {
  SHW_TRY(auto come, exchange_with(
                         transport, [&](int) { return BytesView(own); }, most, step));
  come[static_cast<std::size_t>(transport.rank())] = std::move(own);
  return come;
}

}  // namespace shw

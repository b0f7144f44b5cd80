#include "core/exec/team_device.h"

#include <fmt/core.h>

#include <bit>

#include "core/base/encoder.h"

namespace shw {
namespace {

Bytes encode_device_use(const DeviceUse& use) {
  Encoder payload;
  for (const std::string& text : {use.device, use.why, use.failed}) payload.add(text);
  for (const DeviceWork& work : use.works) {
    payload.add(work.bytes);
    payload.add(std::bit_cast<std::uint64_t>(work.seconds));
  }
  return payload.take();
}

Result<DeviceUse> decode_device_use(BytesView bytes) {
  Decoder payload(bytes);
  DeviceUse use;
  for (std::string* text : {&use.device, &use.why, &use.failed}) {
    SHW_TRY(*text, payload.text());
  }
  for (DeviceWork& work : use.works) {
    SHW_TRY(work.bytes, payload.number());
    SHW_TRY(const std::uint64_t seconds, payload.number());
    work.seconds = std::bit_cast<double>(seconds);
  }
  return use;
}

}  // namespace

Result<DeviceUse> gather_device_use(Team& team, const DeviceUse& own) {
  SHW_TRY(auto told, team.allgather(encode_device_use(own), "tell what the devices did"));
  std::vector<DeviceUse> uses;
  for (const Bytes& message : told) {
    SHW_TRY(DeviceUse use, decode_device_use(message));
    uses.push_back(std::move(use));
  }
  DeviceUse all{"", uses.front().why, {}};
  for (std::size_t member = 0; member < uses.size(); ++member) {
    const DeviceUse& use = uses[member];
    bool is_named = false;
    for (std::size_t i = 0; i < member && !is_named; ++i) is_named = uses[i].device == use.device;
    if (!is_named) all.device += (all.device.empty() ? "" : ", ") + use.device;
    if (all.failed.empty() && !use.failed.empty())
      all.failed = fmt::format("worker {}: {}", member, use.failed);
    for (std::size_t i = 0; i < kDeviceStages; ++i) {
      all.works[i].bytes += use.works[i].bytes;
      all.works[i].seconds += use.works[i].seconds;
    }
  }
  return all;
}

}  // namespace shw

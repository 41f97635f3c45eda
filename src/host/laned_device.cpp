// SPDX-License-Identifier: LGPL-2.1-or-later
#include "laned_device.h"

#include <fmt/format.h>

#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

std::string as_text(const FeatureReply& reply)
{
    return {reply.buffer.begin(), reply.buffer.end()};
}

} // namespace

Refusal still_waited_for(const std::string& where)
{
    return {where, "", "not asked: an earlier request has not come back", RefusalKind::timed_out};
}

LanedDevice::LanedDevice(std::string name, std::uint64_t object, std::unique_ptr<DeviceLine> line, PmQosLane& lane,
                         Patience patience)
    : name_(std::move(name))
    , object_(object)
    , line_(std::move(line))
    , lane_(lane)
    , patience_(patience)
{
}

Result<FeatureReply> LanedDevice::ask_in_lane(const std::string& request, const StillWanted& still_wanted)
{
    const std::string where = fmt::format("{}: {}", name_, tolerance_attribute);
    if (line_->hangs()) // in an earlier call, which has nothing to do with the lane
        return still_waited_for(where);
    auto turn = lane_.wait(where, name_, patience_.deadline(lane_.now()));
    if (!turn)
        return turn.error();
    if (still_wanted && !still_wanted())
        return Refusal{where, "", "not written, the wishes have changed meanwhile", RefusalKind::try_later};
    auto reply = line_->ask(where, request);
    if (line_->hangs())
        turn->leave_behind(object_);
    return reply;
}

Result<std::vector<std::uint8_t>> LanedDevice::identify_controller()
{
    auto reply = line_->ask_drive(name_ + ": Identify Controller", "identify");
    if (!reply)
        return reply.error();
    return std::move(reply->buffer);
}

Result<FeatureReply> LanedDevice::get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length)
{
    return line_->ask_drive(fmt::format("{}: Get Features {:02X}h", name_, feature),
                            fmt::format("get-feature {} {} {}", feature, select, length));
}

Result<std::string> LanedDevice::read_attribute(const std::string& attribute)
{
    const auto reply = line_->ask(name_ + ": " + attribute, "read-attribute " + attribute);
    return reply ? Result<std::string>(as_text(*reply)) : Result<std::string>(reply.error());
}

Result<std::string> LanedDevice::read_tolerance()
{
    const auto reply = ask_in_lane("read-tolerance");
    return reply ? Result<std::string>(as_text(*reply)) : Result<std::string>(reply.error());
}

Result<void> LanedDevice::write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted)
{
    const std::string text = tolerance.kernel_text();
    const auto reply = ask_in_lane("write-tolerance " + text, still_wanted);
    if (reply)
        return {};
    Refusal refusal = reply.error();
    refusal.value = text;
    return refusal;
}

} // namespace nvmepolicy

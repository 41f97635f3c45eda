// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stories.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace nvmepolicy {
namespace {

constexpr StoryStep plug_unplug[] = {
    {"{drive} is unplugged", &Cast::unplug_drive},
    {"another drive is plugged in, and the kernel gives it the lowest free name", &Cast::plug_other},
    {"the drive that was {drive} comes back, perhaps under another name", &Cast::plug_drive},
    {"{other}, the other drive, is unplugged", &Cast::unplug_other},
};

constexpr StoryStep battery[] = {
    {"the AC plug is pulled", &Cast::pull_ac_plug},
    {"the AC plug is put back", &Cast::put_back_ac_plug},
};

constexpr StoryStep reset[] = {
    {"{drive} is reset; the kernel programs the same table again, so there is nothing to do", &Cast::reset_drive},
    {"{drive} is reset to other firmware, which wakes from its deepest state in 20 ms; the kernel goes by that",
     &Cast::reset_to_other_firmware},
    {"{drive} is reset to the firmware that it had", &Cast::reset_to_first_firmware},
};

constexpr StoryStep foreign_writer[] = {
    {"somebody writes 0 to the tolerance file of {drive}, so that it does not sleep", &Cast::forbid_sleep},
    {"{drive} is reset, and what somebody wrote still stands", &Cast::reset_drive},
    {"somebody puts back what was in the tolerance file of {drive}", &Cast::put_back_tolerance},
};

constexpr StoryStep refusing_drive[] = {
    {"{drive} is reset, and refuses Set Features from now on", &Cast::reset_and_refuse},
    {"{drive} is reset, and accepts Set Features again", &Cast::reset_and_accept},
};

constexpr Story all_stories[] = {
    {"plug-unplug", "a drive is unplugged and comes back, after another one has taken its name", plug_unplug},
    {"battery", "the AC plug is pulled and put back", battery},
    {"reset", "a drive is reset, and reset to other firmware", reset},
    {"foreign-writer", "somebody else writes the tolerance file, and theirs stays", foreign_writer},
    {"refusing-drive", "a drive refuses its table, and accepts it after a reset", refusing_drive},
};

constexpr Microseconds wake_latency_of_other_firmware{20'000};

DriveFile with_other_firmware(DriveFile drive)
{
    drive.firmware = "OTHER";
    const auto deepest =
        std::ranges::find(drive.power_states.rbegin(), drive.power_states.rend(), false, &PowerState::operational);
    if (deepest != drive.power_states.rend())
        deepest->exit_latency = wake_latency_of_other_firmware;
    return drive;
}

} // namespace

std::span<const Story> stories()
{
    return all_stories;
}

const Story* find_story(std::string_view name)
{
    const auto* const found = std::ranges::find(all_stories, name, &Story::name);
    return found == std::end(all_stories) ? nullptr : found;
}

std::string told(const StoryStep& step, const Cast& cast)
{
    return fmt::format(fmt::runtime(step.text), fmt::arg("drive", cast.drive()), fmt::arg("other", cast.other()));
}

std::optional<Cast> Cast::choose(SimulatedKernel& kernel)
{
    const std::lock_guard lock(kernel.time());
    std::vector<SimulatedKernel::Held> candidates;
    for (const std::string& name : kernel.names())
        if (auto c = kernel.find(name); c->tolerance_file)
            candidates.push_back(std::move(c));
    if (candidates.empty())
        return std::nullopt;
    // By name, nvme10 would come before nvme3.
    std::ranges::sort(candidates, {}, [](const SimulatedKernel::Held& c) { return c->object; });
    // The other drive is of another model, where there is one.
    return Cast(kernel, candidates.front(), candidates[candidates.size() > 1 ? 1 : 0]->drive);
}

Cast::Cast(SimulatedKernel& kernel, SimulatedKernel::Held drive, DriveFile other_drive)
    : kernel_(&kernel)
    , drive_(std::move(drive))
    , as_plugged_{drive_->drive, drive_->id}
    , other_as_plugged_{std::move(other_drive), {"nqn.2014-08.org.nvmexpress:simulated:other", "SIMULATEDOTHER", 0, {}}}
{
}

std::string Cast::drive() const
{
    const std::lock_guard lock(kernel_->time());
    return drive_->name;
}

std::string Cast::other() const
{
    const std::lock_guard lock(kernel_->time());
    return other_ ? other_->name : "";
}

void Cast::unplug_drive()
{
    kernel_->remove(drive_);
}

void Cast::plug_drive()
{
    drive_ = kernel_->probe(as_plugged_);
}

void Cast::plug_other()
{
    other_ = kernel_->probe(other_as_plugged_);
}

void Cast::unplug_other()
{
    kernel_->remove(other_);
}

void Cast::power(PowerSource source)
{
    const std::lock_guard lock(kernel_->time());
    kernel_->machine.power_source = source;
    if (kernel_->announce)
        kernel_->announce({"power_supply", "change", "AC", ""});
}

void Cast::pull_ac_plug()
{
    power(PowerSource::battery);
}

void Cast::put_back_ac_plug()
{
    power(PowerSource::ac);
}

void Cast::reset_drive()
{
    kernel_->reset(drive_);
}

void Cast::reset_to_other_firmware()
{
    kernel_->reset(drive_, with_other_firmware(as_plugged_.drive));
}

void Cast::reset_to_first_firmware()
{
    kernel_->reset(drive_, as_plugged_.drive);
}

void Cast::forbid_sleep()
{
    const std::lock_guard lock(kernel_->time());
    before_somebody_wrote_ = drive_->tolerance;
    static_cast<void>(kernel_->write_tolerance(drive_, LatencyTolerance::of(Microseconds{0})));
}

void Cast::put_back_tolerance()
{
    static_cast<void>(kernel_->write_tolerance(drive_, before_somebody_wrote_));
}

void Cast::reset(bool refuses)
{
    const std::lock_guard lock(kernel_->time());
    drive_->refuses_apst = refuses;
    kernel_->reset(drive_);
}

void Cast::reset_and_refuse()
{
    reset(true);
}

void Cast::reset_and_accept()
{
    reset(false);
}

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
#include "uevents.h"

#include <cerrno>
#include <libudev.h>
#include <unistd.h>

#include "errno_refusal.h"

namespace nvmepolicy {
namespace {

std::string text(const char* value)
{
    return value ? value : "";
}

/// Room for a burst of some ten thousand events.
constexpr int receive_buffer = 16 * 1024 * 1024;

} // namespace

void UeventMonitor::Unref::operator()(udev_monitor* monitor) const
{
    udev_monitor_unref(monitor);
}

Result<UeventMonitor> UeventMonitor::subscribe(Group group)
{
    const char* name = group == Group::kernel ? "kernel" : "udev";
    udev* context = udev_new();
    if (!context)
        return errno_refusal("libudev", "", errno);
    std::unique_ptr<udev_monitor, Unref> monitor(udev_monitor_new_from_netlink(context, name));
    udev_unref(context); // The monitor keeps its own reference.
    if (!monitor)
        return errno_refusal("uevents", name, errno);
    for (const char* subsystem : {"nvme", "power_supply"})
        udev_monitor_filter_add_match_subsystem_devtype(monitor.get(), subsystem, nullptr);
    udev_monitor_set_receive_buffer_size(monitor.get(), receive_buffer); // Without the privilege the default stays.
    if (const int error = udev_monitor_enable_receiving(monitor.get()); error < 0)
        return errno_refusal("uevents", name, -error);
    return UeventMonitor(std::move(monitor));
}

int UeventMonitor::descriptor() const
{
    return udev_monitor_get_fd(monitor_.get());
}

UeventMonitor::Reading UeventMonitor::next(Uevent& event)
{
    errno = 0;
    udev_device* device = udev_monitor_receive_device(monitor_.get());
    if (!device)
        return errno == ENOBUFS ? Reading::overflow : Reading::nothing;
    event = {text(udev_device_get_subsystem(device)), text(udev_device_get_action(device)),
             text(udev_device_get_sysname(device)), text(udev_device_get_property_value(device, "NVME_EVENT"))};
    udev_device_unref(device);
    return Reading::event;
}

bool udev_runs()
{
    return ::access("/run/udev/control", F_OK) == 0;
}

} // namespace nvmepolicy

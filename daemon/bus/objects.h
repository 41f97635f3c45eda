// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of controllers and subsystems: properties and nothing to change.
#pragma once

#include <functional>
#include <string>

#include "bus/properties.h"
#include "dbus/controller_adaptor.h"
#include "dbus/subsystem_adaptor.h"

namespace nvmepolicy::bus {

/// There while the object is, and announced.
class ControllerObject final
    : public sdbus::AdaptorInterfaces<org::nvmepolicy1::Controller_adaptor, sdbus::ManagedObject_adaptor> {
public:
    ControllerObject(sdbus::IConnection& connection, ControllerProperties properties, std::function<std::string()> describe);
    virtual ~ControllerObject();
    ControllerObject(const ControllerObject&) = delete;
    ControllerObject& operator=(const ControllerObject&) = delete;
    ControllerObject(ControllerObject&&) = delete;
    ControllerObject& operator=(ControllerObject&&) = delete;

    /// Announces what differs.
    void become(ControllerProperties properties);

private:
    std::string Name() override { return p_.name; }
    std::string Model() override { return p_.model; }
    std::string Serial() override { return p_.serial; }
    std::string Firmware() override { return p_.firmware; }
    std::string Transport() override { return p_.transport; }
    std::string Address() override { return p_.address; }
    std::string SubsystemNqn() override { return p_.subsystem_nqn; }
    std::string State() override { return p_.state; }
    std::vector<Dictionary> PowerStates() override { return dictionaries(p_.power_states); }
    bool ApstSupported() override { return p_.apst_supported; }
    bool ApstEnabled() override { return p_.apst_enabled; }
    bool ApstVerified() override { return p_.apst_verified; }
    std::uint64_t LatencyToleranceMicroseconds() override { return p_.latency_tolerance; }
    std::int32_t DeepestState() override { return p_.deepest_state; }
    std::uint64_t WakeLatencyMicroseconds() override { return p_.wake_latency; }
    bool WriteCachePresent() override { return p_.write_cache_present; }
    std::string WriteCacheMode() override { return p_.write_cache_mode; }
    bool BreakerTripped() override { return p_.breaker_tripped; }
    std::vector<std::string> Explanation() override { return p_.explanation; }
    std::string LastError() override { return p_.last_error; }
    std::string Describe() override { return describe_(); }

    ControllerProperties p_;
    std::function<std::string()> describe_;
};

class SubsystemObject final
    : public sdbus::AdaptorInterfaces<org::nvmepolicy1::Subsystem_adaptor, sdbus::ManagedObject_adaptor> {
public:
    SubsystemObject(sdbus::IConnection& connection, SubsystemProperties properties);
    virtual ~SubsystemObject();
    SubsystemObject(const SubsystemObject&) = delete;
    SubsystemObject& operator=(const SubsystemObject&) = delete;
    SubsystemObject(SubsystemObject&&) = delete;
    SubsystemObject& operator=(SubsystemObject&&) = delete;

    void become(SubsystemProperties properties);

private:
    std::string Name() override { return p_.name; }
    std::string Nqn() override { return p_.nqn; }
    std::string IoPolicy() override { return p_.iopolicy; }
    std::vector<std::string> SupportedIoPolicies() override { return {}; } // No kernel tells, as yet.
    std::vector<Dictionary> Paths() override { return dictionaries(p_.paths); }
    std::vector<sdbus::ObjectPath> Controllers() override { return controller_paths(p_.controllers); }

    SubsystemProperties p_;
};

} // namespace nvmepolicy::bus

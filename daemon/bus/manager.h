// SPDX-License-Identifier: LGPL-2.1-or-later
// The root object: what people and programs can ask of the service, and who of them may.
#pragma once

#include <string>
#include <vector>

#include "bus/authorization.h"
#include "bus/inside.h"
#include "bus/properties.h"
#include "bus/reply.h"
#include "bus/signals.h"
#include "dbus/manager_adaptor.h"

namespace nvmepolicy::bus {

class Manager final : public sdbus::AdaptorInterfaces<org::nvmepolicy1::Manager_adaptor, sdbus::ObjectManager_adaptor> {
public:
    Manager(sdbus::IConnection& connection, Signals& signals, const Inside& inside);
    virtual ~Manager();
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;
    Manager(Manager&&) = delete;
    Manager& operator=(Manager&&) = delete;

    /// Announces what has changed of the properties.
    void refresh();
    void hold_released(Cookie cookie);
    void overridden(const Outcome& outcome);

private:
    using Change = sdbus::Struct<sdbus::ObjectPath, std::string, std::string, std::string, std::string, std::string>;

    std::string Version() override { return NVMEPOLICY_VERSION; }
    std::string ActiveProfile() override { return in_.reconciler.circumstances().wish.profile; }
    std::string BaseProfile() override { return in_.wishes.base(); }
    std::vector<Dictionary> Profiles() override { return dictionaries(in_.wishes.policy().profiles); }
    std::vector<Dictionary> ActiveHolds() override { return dictionaries(in_.wishes.holds().all()); }
    bool OnBattery() override { return announced_.on_battery; }
    bool DryRun() override { return announced_.dry_run; }
    bool Simulated() override { return in_.simulated; }
    std::string ConfigurationError() override { return announced_.configuration_error; }

    void SetProfile(sdbus::Result<>&& result, std::string profile) override;
    void HoldProfile(sdbus::Result<std::uint32_t>&& result, std::string profile, std::string reason,
                     std::string application_id) override;
    void HoldLatency(sdbus::Result<std::uint32_t>&& result, sdbus::ObjectPath controller, std::uint64_t max_microseconds,
                     std::string reason, std::string application_id) override;
    void Release(sdbus::Result<>&& result, std::uint32_t cookie) override;
    void Reconcile(sdbus::Result<>&& result) override;
    void Reload(sdbus::Result<>&& result) override;
    void ClearBreaker(sdbus::Result<>&& result, sdbus::ObjectPath controller) override;
    std::vector<Change> Plan() override;
    std::string Describe() override;

    /// Who sent the call that is being handled.
    [[nodiscard]] std::string sender() const { return sender_of_current(getObject()); }
    [[nodiscard]] ManagerProperties now() const;
    template <class Asked, class Then>
    void authorized(const Asked& reply, const char* action, Then then);
    void hold(sdbus::Result<std::uint32_t>&& result, Hold hold);
    void watch_those_who_matter();

    Signals& signals_;
    Inside in_;
    Authorization authorization_;
    ManagerProperties announced_;
};

} // namespace nvmepolicy::bus

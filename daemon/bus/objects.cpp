// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/objects.h"

#include "bus/names.h"

namespace nvmepolicy::bus {
namespace {

template <class Properties>
void change(sdbus::IObject& object, const char* interface, Properties& from, Properties to)
{
    const auto changed = differences(from, to);
    from = std::move(to);
    if (!changed.empty())
        unless_lost([&] { emit_properties_changed(object, interface, changed); });
}

} // namespace

ControllerObject::ControllerObject(sdbus::IConnection& connection, ControllerProperties properties,
                                   std::function<std::string()> describe)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{controller_path(properties.name)})
    , p_(std::move(properties))
    , describe_(std::move(describe))
{
    registerAdaptor();
    unless_lost([this] { emitInterfacesAddedSignal(); });
}

ControllerObject::~ControllerObject()
{
    unless_lost([this] { emitInterfacesRemovedSignal(); });
    unregisterAdaptor();
}

void ControllerObject::become(ControllerProperties properties)
{
    change(getObject(), controller_interface, p_, std::move(properties));
}

SubsystemObject::SubsystemObject(sdbus::IConnection& connection, SubsystemProperties properties)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{subsystem_path(properties.name)})
    , p_(std::move(properties))
{
    registerAdaptor();
    unless_lost([this] { emitInterfacesAddedSignal(); });
}

SubsystemObject::~SubsystemObject()
{
    unless_lost([this] { emitInterfacesRemovedSignal(); });
    unregisterAdaptor();
}

void SubsystemObject::become(SubsystemProperties properties)
{
    change(getObject(), subsystem_interface, p_, std::move(properties));
}

} // namespace nvmepolicy::bus

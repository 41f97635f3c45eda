// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_line.h"

#include <cerrno>

#include "host/errno_refusal.h"
#include "host/laned_device.h"

namespace nvmepolicy {
namespace {

Result<FeatureReply> meaning_of(const std::string& where, const KernelAnswer& answer)
{
    switch (answer.kind) {
    case KernelAnswer::Kind::error_number: return errno_refusal(where, "", static_cast<int>(answer.number));
    case KernelAnswer::Kind::nvme_status: return status_refusal(where, answer.number);
    case KernelAnswer::Kind::ok: break;
    }
    return FeatureReply{answer.number, answer.buffer};
}

} // namespace

bool PendingCalls::waits_for(std::uint64_t controller_object) const
{
    const auto found = calls_.find(controller_object);
    return found != calls_.end() && !found->second->returned;
}

SimulatedLine::SimulatedLine(SimulatedKernel& kernel, std::string name, SimulatedKernel::Held controller, Waiting& waiting,
                             Patience patience, PendingCalls& left_behind)
    : kernel_(kernel)
    , name_(std::move(name))
    , controller_(std::move(controller))
    , waiting_(waiting)
    , patience_(patience)
    , left_behind_(left_behind)
{
}

Result<void> SimulatedLine::open_node()
{
    if (node_open_)
        return {};
    const std::lock_guard lock(kernel_.time());
    const std::string path = "/dev/" + name_;
    const auto now_called_so = kernel_.find(name_);
    if (!now_called_so)
        return errno_refusal(path, "", ENOENT);
    if (now_called_so != controller_)
        return Refusal{path, "", "this node belongs to another controller by now", RefusalKind::gone};
    if (controller_->state != ControllerState::live)
        return errno_refusal(path, "", EAGAIN);
    node_open_ = true;
    return {};
}

Result<FeatureReply> SimulatedLine::ask_drive(const std::string& where, const std::string& request)
{
    if (const auto opened = open_node(); !opened)
        return opened.error();
    return ask(where, request);
}

Result<FeatureReply> SimulatedLine::ask(const std::string& where, const std::string& request)
{
    if (hangs_)
        return still_waited_for(where);
    if (left_behind_.waits_for(controller_->object))
        return still_waited_for(name_);
    const auto call = std::make_shared<PendingCall>();
    if (kernel_.requested)
        kernel_.requested(*controller_, request, call);
    kernel_.time().spawn(name_ + ": " + request, [&kernel = kernel_, c = controller_, request, call] {
        call->answer = kernel.call(c, request);
        call->returned = true;
    });
    const auto patience_ends = patience_.deadline(waiting_.now()).time_since_epoch();
    if (!kernel_.time().sleep_until(
            where + " is waited for", [call] { return call->returned; },
            std::chrono::duration_cast<Milliseconds>(patience_ends))) {
        hangs_ = true;
        left_behind_.leave(controller_->object, call);
        return Refusal{where, "", "no answer in time; the request is left to the kernel", RefusalKind::timed_out};
    }
    return meaning_of(where, call->answer);
}

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_guard.h"

#include <fmt/format.h>

namespace nvmepolicy {

SimulatedGuard::SimulatedGuard(SimulatedKernel& kernel, std::string name, SimulatedKernel::Held controller,
                               std::unique_ptr<DeviceLine> line)
    : name_(std::move(name))
    , line_(std::move(line))
    , process_(std::make_shared<Process>(Process{kernel, std::move(controller)}))
{
}

SimulatedGuard::~SimulatedGuard()
{
    const std::lock_guard lock(process_->kernel.time());
    process_->kernel.time().spawn(name_ + ": its guard ends",
                                  [process = process_] { process->serve([&process] { process->put_back(); }); });
}

void SimulatedGuard::Process::serve(const std::function<void()>& work)
{
    const std::lock_guard lock(kernel.time());
    kernel.time().sleep_until(
        controller->name + ": its guard is busy", [this] { return !busy; }, std::nullopt);
    busy = true;
    work();
    busy = false;
}

void SimulatedGuard::Process::put_back()
{
    if (!through && !unflushed)
        return;
    if (through && kernel.call(controller, "write-back").kind == KernelAnswer::Kind::ok) {
        through = false;
        unflushed = true;
    }
    if (!through && kernel.call(controller, "flush").kind == KernelAnswer::Kind::ok)
        unflushed = false;
}

Result<void> SimulatedGuard::ask(const std::string& what, const std::string& request)
{
    const auto reply = line_->ask(fmt::format("{}: {}", name_, what), request);
    return reply ? Result<void>{} : Result<void>(reply.error());
}

Result<void> SimulatedGuard::hold(const std::string& leaf)
{
    if (auto written = ask(leaf + " is written back first", "write-back " + leaf); !written)
        return written;
    return ask("Flush of " + leaf, "flush " + leaf);
}

Result<void> SimulatedGuard::write_through(const std::string& leaf, std::uint64_t doubts)
{
    Result<void> result;
    process_->serve([&] {
        if (process_->doubts > doubts) {
            result = Refusal{name_ + ": " + leaf, "", "not written through: there was a doubt meanwhile",
                             RefusalKind::try_later};
            return;
        }
        process_->through = true; // Before the attempt: whatever becomes of it.
        result = ask(leaf + "/queue/write_cache", "write-through " + leaf);
    });
    return result;
}

Result<void> SimulatedGuard::write_back(const std::string& leaf)
{
    process_->through = process_->through || !process_->unflushed;
    process_->serve([this] { process_->put_back(); });
    if (process_->through || process_->unflushed)
        return Refusal{name_ + ": " + leaf, "", "could not be written back and flushed", RefusalKind::failed};
    return {};
}

void SimulatedGuard::doubt()
{
    const std::lock_guard lock(process_->kernel.time());
    ++process_->doubts;
    process_->kernel.time().spawn(name_ + ": its guard is told",
                                  [process = process_] { process->serve([&process] { process->put_back(); }); });
}

std::uint64_t SimulatedGuard::doubts() const
{
    const std::lock_guard lock(process_->kernel.time());
    return process_->doubts;
}

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
// The guard of a simulated controller's disk: as GuardChild, a process of its own that serves one thing after the other.
#pragma once

#include <memory>
#include <string>

#include "host/cache_guard.h"
#include "host/device_line.h"
#include "simulated_kernel.h"

namespace nvmepolicy {

class SimulatedGuard : public CacheGuard {
public:
    /// `line`: the service's end of the requests.
    SimulatedGuard(SimulatedKernel& kernel, std::string name, SimulatedKernel::Held controller,
                   std::unique_ptr<DeviceLine> line);
    ~SimulatedGuard() override;
    SimulatedGuard(const SimulatedGuard&) = delete;
    SimulatedGuard& operator=(const SimulatedGuard&) = delete;
    SimulatedGuard(SimulatedGuard&&) = delete;
    SimulatedGuard& operator=(SimulatedGuard&&) = delete;

    [[nodiscard]] Result<void> hold(const std::string& leaf) override;
    [[nodiscard]] Result<void> write_through(const std::string& leaf, std::uint64_t doubts) override;
    [[nodiscard]] Result<void> write_back(const std::string& leaf) override;
    void doubt() override;
    [[nodiscard]] std::uint64_t doubts() const override;

private:
    /// Outlives whoever started it.
    struct Process {
        SimulatedKernel& kernel;
        SimulatedKernel::Held controller;
        std::uint64_t doubts = 0;
        bool busy = false;
        bool through = false;   ///< the disk is, or may be
        bool unflushed = false; ///< it was
        /// Serves one request; the kernel is held.
        void serve(const std::function<void()>& work);
        void put_back();
    };
    Result<void> ask(const std::string& what, const std::string& request);

    std::string name_;
    std::unique_ptr<DeviceLine> line_;
    std::shared_ptr<Process> process_;
};

} // namespace nvmepolicy

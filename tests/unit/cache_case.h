// SPDX-License-Identifier: LGPL-2.1-or-later
// A drive whose cache is off, now and after a reset, and nothing speaks against write through; to be spoilt one thing at a
// time.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nvmepolicy/decide_cache.h"

namespace nvmepolicy {

inline Leaf leaf_named(const std::string& name)
{
    Leaf leaf;
    leaf.name = name;
    leaf.cache_mode = std::string(write_back);
    leaf.fua = true;
    leaf.nsid = 1;
    leaf.flushes = 0;
    leaf.shared_with = std::vector<std::uint16_t>{};
    return leaf;
}

/// Kioxia CD6-V: VWC 05h, WCE 0 from the factory, a flush takes 194 us all the same.
struct CacheCase {
    Controller controller;
    Machine machine;
    WriteCachePolicy policy;
    CacheDetection detection{CacheDetection::Method::tracepoint, {}};
    std::vector<CachePeer> peers;

    CacheCase()
    {
        IdentifyController id;
        id.serial = "Y2D0A00TT1A8";
        id.model = "KCD6XVUL3T20";
        id.cntlid = 1;
        id.oncs = 0x5f;
        id.vwc = 5;
        controller.name = "nvme0";
        controller.id = {"nqn.2019-10.com.kioxia:KCD6XVUL3T20:Y2D0A00TT1A8", id.serial, 1, {}};
        controller.object = 7001;
        controller.model = id.model;
        controller.transport = "pcie";
        controller.state = ControllerState::live;
        controller.identify = id;
        feature(WriteCacheFeature{false, false, std::nullopt, false, false, true});
        controller.critical_warning = std::uint8_t{0};
        controller.leaves = {leaf_named("nvme0n1")};
        machine.dm_samples_cache_mode = true;
    }

    CacheCase& feature(const WriteCacheFeature& f)
    {
        controller.write_cache = std::optional{f};
        return *this;
    }
    CacheCase& identify(std::uint8_t vwc, std::uint16_t oncs)
    {
        IdentifyController id = *controller.identify;
        id.vwc = vwc;
        id.oncs = oncs;
        controller.identify = id;
        return *this;
    }
    CacheCase& mode(const char* cache_mode, std::optional<bool> fua = true)
    {
        leaf().cache_mode = std::string(cache_mode);
        leaf().fua = fua;
        return *this;
    }
    CacheCase& layer(Layer above)
    {
        leaf().holders.push_back(above.name);
        leaf().layers.push_back(std::move(above));
        return *this;
    }
    CacheCase& shared_with(std::vector<std::uint16_t> others)
    {
        leaf().shared_with = std::move(others);
        return *this;
    }
    Leaf& leaf() { return controller.leaves.front(); }

    [[nodiscard]] CacheQuestion question() const { return {controller, machine, policy, detection, peers}; }
    [[nodiscard]] CacheDecision decide() const { return decide_cache(question()); }
    [[nodiscard]] LeafDecision leaf_decision() const { return decide().leaves.at(0); }
    [[nodiscard]] CacheRule rule() const { return leaf_decision().rule; }
    [[nodiscard]] std::string reason() const { return leaf_decision().reason; }
    [[nodiscard]] std::vector<CacheModeChange> plan() const { return plan_cache(question(), decide()); }
    /// What the only leaf would be made; empty: nothing would be written.
    [[nodiscard]] std::string planned() const
    {
        const auto changes = plan();
        EXPECT_LE(changes.size(), 1U);
        return changes.empty() ? std::string{} : changes.front().to;
    }
};

inline void PrintTo(CacheRule rule, std::ostream* out)
{
    *out << show(rule);
}

} // namespace nvmepolicy

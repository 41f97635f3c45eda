// SPDX-License-Identifier: LGPL-2.1-or-later
// Write back or write through: the safety rules, in one place. Whoever doubts a rule looks in decide_cache.cpp, where each
// has its number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nvmepolicy/facts.h"
#include "nvmepolicy/plan.h"
#include "nvmepolicy/policy.h"

namespace nvmepolicy {

/// How it would be noticed that somebody enables the cache again (S5).
struct CacheDetection {
    enum class Method {
        none,       ///< Nobody watches: never write through.
        tracepoint, ///< Each Set Features is seen as it is sent.
        poll,       ///< Feature 06h is read now and then: seconds of risk, which the administrator has accepted.
    };
    Method method = Method::none;
    std::string why_not; ///< with `none`: what stands in the way, as a clause
    friend bool operator==(const CacheDetection&, const CacheDetection&) = default;
};

/// Why a leaf gets the mode that it gets. The first that applies, in this order.
enum class CacheRule {
    // Not ours to write.
    no_cache,  ///< VWC bit 0 is 0: the kernel itself writes through.
    by_kernel, ///< S10: the kernel has found the cache disabled by itself.
    // Write back.
    not_live,      ///< S3: nothing is known of a controller that is not live.
    unread,        ///< Identify, feature 06h or the leaf could not be read, or says nothing for this namespace.
    enabled,       ///< WCE is 1.
    lost_by_reset, ///< WCE is 0, and a reset brings the cache back or might.
    backup_failed, ///< S7: SMART critical warning bit 4, or no warning could be read.
    shared,        ///< S11: other controllers have this namespace too.
    stacked,       ///< S9: a layer above would not notice when the mode changes back.
    unwatched,     ///< S5: nobody would notice when the cache is enabled again.
    // Write through.
    disabled, ///< WCE is 0, stays 0 over a reset, and nothing speaks against it.
    trusted,  ///< As `disabled`, but for the reset: `trust_current` takes the risk.
};
[[nodiscard]] std::string show(CacheRule rule);
[[nodiscard]] std::string show(CacheDetection::Method method);

/// The decision for one leaf.
struct LeafDecision {
    std::string leaf;
    CacheRule rule = CacheRule::unread;
    std::string reason; ///< one clause, with the facts used
    /// Write through although the cache is on, or might be: flushes that matter are suppressed now.
    bool unsafe = false;
    /// Layers above that have taken over write through and do not look again; they suppress flushes whatever the leaf's mode
    /// is.
    std::vector<std::string> deaf_layers;
    friend bool operator==(const LeafDecision&, const LeafDecision&) = default;

    [[nodiscard]] bool wants_write_through() const { return rule == CacheRule::disabled || rule == CacheRule::trusted; }
    [[nodiscard]] bool wants_write_back() const { return rule >= CacheRule::not_live && rule <= CacheRule::unwatched; }
};

struct CacheDecision {
    CacheMode mode = CacheMode::reconcile;
    CacheDetection detection;
    std::vector<LeafDecision> leaves; ///< in the order of the controller's leaves
    std::string reason;               ///< of the drive as a whole, one clause
    friend bool operator==(const CacheDecision&, const CacheDecision&) = default;

    /// A leaf is, or a deaf layer is above one whose cache is on or might be (S9).
    [[nodiscard]] bool unsafe() const;
};

/// What is known of another controller that has a namespace in common (S11).
struct CachePeer {
    std::uint16_t cntlid = 0;
    Result<std::optional<WriteCacheFeature>> write_cache = Refusal{};
};

struct CacheQuestion {
    const Controller& controller;
    const Machine& machine;
    const WriteCachePolicy& policy;
    const CacheDetection& detection;
    std::span<const CachePeer> peers; ///< those that this machine reaches; a namespace shared with others stays write back
};

/// Pure. Source of the rules: NVMe 1.4c, section 5.21.1.6, and the kernel's queue_wc_store(), submit_bio_noacct(),
/// blk_insert_flush().
[[nodiscard]] CacheDecision decide_cache(const CacheQuestion& question);

/// What to write. Nothing in mode `observe`. Never write through but for a leaf that reads write back and wants it.
[[nodiscard]] std::vector<CacheModeChange> plan_cache(const CacheQuestion& question, const CacheDecision& decision);

/// One paragraph, for the person whose flush is slow or whose data matters.
[[nodiscard]] std::vector<std::string> explain_cache(const CacheQuestion& question, const CacheDecision& decision);

} // namespace nvmepolicy

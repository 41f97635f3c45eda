// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernel's trace events tell of features that somebody reads and sets, as text of `trace_pipe`.
#pragma once

#include <cstdint>
#include <string_view>

namespace nvmepolicy {

/// One line. Source: the events nvme:nvme_setup_cmd and nvme:nvme_complete_rq, nvme_trace_admin_set_features(),
/// nvme_trace_admin_get_features(); lost events: print_trace_line().
struct TraceRecord {
    enum class Kind {
        set_write_cache, ///< Set Features 06h is being sent.
        get_write_cache, ///< Get Features 06h is being sent.
        completed,       ///< An admin command has come back.
        other,           ///< A line that is understood and concerns nobody here.
        lost,            ///< Records were overwritten before they were read.
        unknown,         ///< Not understood: to be taken for a lost one.
    };
    Kind kind = Kind::unknown;
    std::uint32_t controller = 0; ///< the N of nvmeN
    std::uint32_t command = 0;    ///< command identifier on the admin queue
    std::uint32_t status = 0;     ///< of a completion
    friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

/// Pure; for any text.
[[nodiscard]] TraceRecord parse_trace_line(std::string_view line);

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
// Lines of trace_pipe. The name of a task in them may be anything that fits into 15 bytes, and must not hide a Set Features.
#include "nvmepolicy/feature_trace.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nvmepolicy {

inline void PrintTo(const TraceRecord& r, std::ostream* out)
{
    constexpr const char* kinds[] = {"set_write_cache", "get_write_cache", "completed", "other", "lost", "unknown"};
    *out << kinds[static_cast<std::size_t>(r.kind)] << " nvme" << r.controller << " command " << r.command << " status "
         << r.status;
}

namespace {

using Kind = TraceRecord::Kind;

constexpr TraceRecord other{Kind::other, 0, 0, 0};
constexpr TraceRecord unknown{Kind::unknown, 0, 0, 0};
constexpr TraceRecord lost{Kind::lost, 0, 0, 0};

const std::string context = "            nvme-1234    [001] .....   123.456789: ";

TraceRecord setup(const std::string& rest)
{
    return parse_trace_line(context + "nvme_setup_cmd: " + rest + "\n");
}

TraceRecord command(const std::string& text)
{
    return setup("nvme0: qid=0, cmdid=28673, nsid=0, flags=0x0, meta=0x0, cmd=(" + text + ")");
}

TEST(ASetFeatures06h, IsSeen)
{
    EXPECT_EQ(command("nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1"), (TraceRecord{Kind::set_write_cache, 0, 28673, 0}));
    EXPECT_EQ(command("nvme_admin_set_features fid=0x6, sv=0x1, cdw11=0x0"), (TraceRecord{Kind::set_write_cache, 0, 28673, 0}));
    EXPECT_EQ(setup("nvme17: qid=0, cmdid=12, nsid=4294967295, flags=0x40, meta=0x0, cmd=(nvme_admin_set_features fid=0x6, "
                    "sv=0x0, cdw11=0xffffffff)"),
              (TraceRecord{Kind::set_write_cache, 17, 12, 0}));
    EXPECT_EQ(setup("nvme3: disk=nvme3n1, qid=0, cmdid=12, nsid=1, flags=0x0, meta=0xdeadbeef, cmd=(nvme_admin_set_features "
                    "fid=0x6, sv=0x0, cdw11=0x0)"),
              (TraceRecord{Kind::set_write_cache, 3, 12, 0}))
        << "sent by way of the disk";
}

TEST(AGetFeatures06h, IsSeen)
{
    EXPECT_EQ(command("nvme_admin_get_features fid=0x6, sel=0x0, cdw11=0x0"),
              (TraceRecord{Kind::get_write_cache, 0, 28673, 0}));
    EXPECT_EQ(command("nvme_admin_get_features fid=0x6, sel=0x3, cdw11=0x0"),
              (TraceRecord{Kind::get_write_cache, 0, 28673, 0}));
}

TEST(AnotherFeature, ConcernsNobody)
{
    // The number is hexadecimal: 16h and 60h are no 6.
    for (const char* fid : {"0x1", "0xc", "0x16", "0x60", "0x7", "0x0", "0xc6"})
        EXPECT_EQ(command(std::string("nvme_admin_set_features fid=") + fid + ", sv=0x0, cdw11=0x1"), other) << fid;
    EXPECT_EQ(command("nvme_admin_get_features fid=0xc, sel=0x0, cdw11=0x0"), other);
}

TEST(AnotherCommand, ConcernsNobody)
{
    EXPECT_EQ(command("nvme_admin_identify cns=1, ctrlid=0"), other);
    EXPECT_EQ(command("nvme_admin_get_log_page 02 00 7f 00 00 00 00 00"), other);
    EXPECT_EQ(command("nvme_fabrics_type_property_get attrib=0, ofst=0x1c"), other);
    EXPECT_EQ(command("0xc1 cdw10=00 00 00"), other);
    EXPECT_EQ(setup("nvme0: disk=nvme0n1, qid=3, cmdid=53249, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=0, len=7, "
                    "ctrl=0x0, dsmgmt=0, reftag=0)"),
              other);
}

TEST(AnIoQueue, HasNoFeatures)
{
    // Opcode 09h of an I/O queue is Dataset Management.
    EXPECT_EQ(setup("nvme0: qid=1, cmdid=1, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features fid=0x6, sv=0x0, "
                    "cdw11=0x1)"),
              other);
}

TEST(AnOpcodeWithoutAName, IsNotUnderstoodWhereItIsThatOfAFeature)
{
    EXPECT_EQ(command("0x9 cdw10=06 00 00 00 01"), unknown);
    EXPECT_EQ(command("0xa cdw10=06 00 00 00 01"), unknown);
    EXPECT_EQ(command("0x09 cdw10=06 00 00 00 01"), unknown);
    EXPECT_EQ(command("0x cdw10=06 00 00 00 01"), unknown);
}

TEST(ACompletion, IsSeen)
{
    const auto completed = [](const std::string& rest) {
        return parse_trace_line("          <idle>-0       [003] d.h1.   123.456999: nvme_complete_rq: " + rest);
    };
    EXPECT_EQ(completed("nvme0: qid=0, cmdid=28673, res=0x0, retries=0, flags=0x2, status=0x0"),
              (TraceRecord{Kind::completed, 0, 28673, 0}));
    EXPECT_EQ(completed("nvme12: qid=0, cmdid=7, res=0x1ffffffff, retries=5, flags=0x2, status=0x4002\n"),
              (TraceRecord{Kind::completed, 12, 7, 0x4002}));
    EXPECT_EQ(completed("nvme0: disk=nvme0n1, qid=2, cmdid=7, res=0x0, retries=0, flags=0x0, status=0x0"), other);
    EXPECT_EQ(completed("nvme0: qid=0, cmdid=7, res=0x0, retries=0, flags=0x0, status="), unknown);
    EXPECT_EQ(completed("nvme0: qid=0, cmdid=7, res=0x0, retries=0, flags=0x0"), unknown);
    EXPECT_EQ(completed("nvme0: qid=0, cmdid=7, res=0x0, retries=0, flags=0x0, status=0x0 more"), unknown);
}

TEST(LostEvents, AreLost)
{
    EXPECT_EQ(parse_trace_line("CPU:1 [LOST 12 EVENTS]"), lost);
    EXPECT_EQ(parse_trace_line("CPU:255 [LOST 18446744073709551615 EVENTS]\n"), lost);
    EXPECT_EQ(parse_trace_line("CPU:0 [LOST EVENTS]\n"), lost);
}

TEST(ALine, OfWhichTheKernelShowsMoreThanUsualIsReadAllTheSame)
{
    const std::string event =
        "nvme_setup_cmd: nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features "
        "fid=0x6, sv=0x0, cdw11=0x1)";
    for (const char* before : {
             "            nvme-1234    [001] .....   123.456789: ",           // 6.1 and 6.12
             "            nvme-1234    [001] d..1.   123.456789: ",           //
             "            nvme-1234    (   1200) [001] .....   123.456789: ", // record-tgid
             "            nvme-1234    (-------) [001] .....   123.456789: ",
             "            nvme-1234    [001]   123.456789: ",       // without irq-info
             "            nvme-1234    [001] ..... 123456789012: ", // a clock that counts
             "    kworker/u8:2-1234567 [127] ..... 99999.000001: ",
             "           <...>-1234    [001] .....   123.456789: ",
         })
        EXPECT_EQ(parse_trace_line(before + event), (TraceRecord{Kind::set_write_cache, 0, 1, 0})) << before;
}

TEST(ATask, MayBeCalledAnythingAndHidesNothing)
{
    const std::string event = "-4321    [001] .....   123.456789: nvme_setup_cmd: nvme5: qid=0, cmdid=99, nsid=0, flags=0x0, "
                              "meta=0x0, cmd=(nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1)\n";
    // At most 15 bytes. Source: TASK_COMM_LEN.
    for (const char* comm : {"",
                             " ",
                             "nvme_setup_cmd:",
                             ": nvme_setup_cm",
                             "nvme0: qid=0,",
                             "cmd=(",
                             "cmd=(x) [001] ",
                             "[001] 1.2: x",
                             "-1 [0] 1.2: ",
                             "-",
                             "a-1",
                             "a b c",
                             "CPU:1 [LOST 1 E",
                             ":",
                             ": : : :",
                             "\t",
                             "\\n",
                             "\xff\xfe",
                             "\x1b[2J",
                             "nvme_complete_r",
                             "%s%n",
                             "[[[[[[[[[[[[[[[",
                             "]]]]]]]]]]]]]]]",
                             "---------------"})
        for (const char* padding : {"", "       "})
            EXPECT_EQ(parse_trace_line(std::string(padding) + comm + event), (TraceRecord{Kind::set_write_cache, 5, 99, 0}))
                << comm;
}

TEST(ATask, WhoseNameBreaksTheLineHidesNothing)
{
    const std::string comm = "nvme\nx";
    const std::string line = "          " + comm
                             + "-4321    [001] .....   123.456789: nvme_setup_cmd: nvme5: qid=0, cmdid=99, nsid=0, flags=0x0, "
                               "meta=0x0, cmd=(nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1)";
    const std::size_t end = line.find('\n');
    EXPECT_EQ(parse_trace_line(line.substr(0, end + 1)), unknown) << "counts as lost";
    EXPECT_EQ(parse_trace_line(line.substr(end + 1)), (TraceRecord{Kind::set_write_cache, 5, 99, 0}));
    // As the first piece of a name, it must not pass for anything but lost.
    for (const char* piece : {"CPU:1 [LOST 1 E", ": nvme_setup_cm", "", "   "})
        EXPECT_EQ(parse_trace_line(piece), unknown) << piece;
}

TEST(ALine, ThatIsNotUnderstoodSaysSo)
{
    for (const char* line :
         {"", "\n", "# tracer: nop", "##### CPU 1 buffer started ####", "CPU:1 [LOST", "CPU:x [LOST 1 EVENTS]",
          "CPU:1 [LOST 1 EVENTS] and more", "nvme_setup_cmd: nvme0: qid=0",
          ": nvme_setup_cmd: ", "  x-1 [001] .....  1.5: nvme_sq: nvme0: disk=nvme0n1, qid=1, head=1, tail=2",
          "  x-1 [001] .....  1.5: sched_switch: prev_comm=x"})
        EXPECT_EQ(parse_trace_line(line), unknown) << line;
}

TEST(AnEvent, ThatIsCutShortOrOddIsNotUnderstood)
{
    const std::string whole = context
                              + "nvme_setup_cmd: nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, "
                                "cmd=(nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1)";
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_EQ(parse_trace_line(whole.substr(0, length)), unknown) << whole.substr(0, length);
    for (const char* text : {
             "nvme: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features fid=0x6, sv=0x0, cdw11=0x1)",
             "nvme4294967296: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_identify cns=1)",
             "nvme-1: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_identify cns=1)",
             "nvme0: qid=-1, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_identify cns=1)",
             "nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features fid=6, sv=0x0, cdw11=0x1)",
             "nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features fid=0xc)",
             "nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(nvme_admin_set_features fid=0xc, sv=0x0, cdw11=0x1) x",
             "nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=()",
             "nvme0: qid=0, cmdid=1, nsid=0, flags=0x0, meta=0x0, cmd=(SET_FEATURES fid=0x6, sv=0x0, cdw11=0x1)",
         })
        EXPECT_EQ(setup(text), unknown) << text;
}

} // namespace
} // namespace nvmepolicy

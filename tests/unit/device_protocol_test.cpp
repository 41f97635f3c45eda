// SPDX-License-Identifier: LGPL-2.1-or-later
// The lines between a program and its child: what is understood, and that everything else is not. And what an errno or an
// NVMe status means.
#include "host/device_protocol.h"

#include <cerrno>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

#include "host/errno_refusal.h"

namespace nvmepolicy {
namespace {

using device_protocol::AnswerKind;
using device_protocol::AnswerLine;

struct LineRow {
    std::string name;
    std::string text;
    std::optional<AnswerLine> line;
};
void PrintTo(const LineRow& row, std::ostream* out)
{
    *out << row.name;
}

class AnAnswer : public testing::TestWithParam<LineRow> {};
TEST_P(AnAnswer, IsUnderstoodOrNot)
{
    AnswerLine line;
    ASSERT_EQ(device_protocol::parse(GetParam().text, line), GetParam().line.has_value());
    if (!GetParam().line)
        return;
    EXPECT_EQ(line.kind, GetParam().line->kind);
    EXPECT_EQ(line.number, GetParam().line->number);
    EXPECT_EQ(line.length, GetParam().line->length);
}
INSTANTIATE_TEST_SUITE_P(
    Line, AnAnswer,
    testing::Values(LineRow{"identify", "ok 0 4096", AnswerLine{AnswerKind::ok, 0, 4096}},
                    LineRow{"feature", "ok 1 256", AnswerLine{AnswerKind::ok, 1, 256}},
                    LineRow{"largest_result", "ok 4294967295 0", AnswerLine{AnswerKind::ok, 4294967295, 0}},
                    LineRow{"errno", "errno 19 0", AnswerLine{AnswerKind::error_number, 19, 0}},
                    LineRow{"status", "status 16386 0", AnswerLine{AnswerKind::status, 16386, 0}},
                    LineRow{"longer_than_a_page", "ok 0 4097", {}}, LineRow{"result_too_large", "ok 4294967296 0", {}},
                    LineRow{"length_too_large", "ok 0 4294967296", {}}, LineRow{"negative", "ok -1 0", {}},
                    LineRow{"negative_length", "ok 0 -1", {}}, LineRow{"plus", "ok +1 0", {}}, LineRow{"empty", "", {}},
                    LineRow{"word", "ok", {}}, LineRow{"word_and_blank", "ok ", {}}, LineRow{"one_number", "ok 0", {}},
                    LineRow{"no_length", "ok 0 ", {}}, LineRow{"three_numbers", "ok 0 0 0", {}},
                    LineRow{"blank_behind", "ok 0 0 ", {}}, LineRow{"two_blanks", "ok  0 0", {}},
                    LineRow{"newline", "ok 0 0\n", {}}, LineRow{"hexadecimal", "ok 0x0 0", {}},
                    LineRow{"another_word", "maybe 0 0", {}}, LineRow{"capitals", "OK 0 0", {}},
                    LineRow{"nul", std::string("ok 0 0\0", 7), {}}),
    [](const auto& row) { return row.param.name; });

TEST(EveryAnswer, ComesBackAsItWasFormatted)
{
    for (const AnswerKind kind : {AnswerKind::ok, AnswerKind::error_number, AnswerKind::status})
        for (const std::uint32_t number : {0U, 1U, 19U, 0x4002U, 0xffffffffU})
            for (const std::uint32_t length : {0U, 1U, 256U, 4096U}) {
                std::string text = device_protocol::format({kind, number, length});
                ASSERT_TRUE(text.ends_with('\n'));
                text.pop_back();
                AnswerLine line;
                ASSERT_TRUE(device_protocol::parse(text, line)) << text;
                EXPECT_EQ(line.kind, kind);
                EXPECT_EQ(line.number, number);
                EXPECT_EQ(line.length, length);
            }
}

TEST(RandomBytes, NeverAskForMoreThanAPage)
{
    std::mt19937 dice(1);
    const std::string letters = "okernstau 0123456789-\n";
    for (int run = 0; run < 200'000; ++run) {
        std::string text = run % 2 ? "ok " : "";
        for (std::size_t length = dice() % 20; length > 0; --length)
            text += letters[dice() % letters.size()];
        AnswerLine line;
        if (device_protocol::parse(text, line)) {
            EXPECT_LE(line.length, device_protocol::largest_buffer);
        }
    }
}

struct ErrnoRow {
    std::string name;
    int error;
    RefusalKind kind;
    std::string text;
};
void PrintTo(const ErrnoRow& row, std::ostream* out)
{
    *out << row.name;
}

class AnErrno : public testing::TestWithParam<ErrnoRow> {};
TEST_P(AnErrno, HasItsLine)
{
    const Refusal refusal = errno_refusal("nvme0", "5500", GetParam().error);
    EXPECT_EQ(refusal.kind, GetParam().kind);
    EXPECT_EQ(refusal.text(), "nvme0: \"5500\": " + GetParam().text);
}
INSTANTIATE_TEST_SUITE_P(
    Of, AnErrno,
    testing::Values(ErrnoRow{"enoent", ENOENT, RefusalKind::absent, "there is no such file (ENOENT)"},
                    ErrnoRow{"enodev", ENODEV, RefusalKind::gone, "the controller has left (ENODEV)"},
                    ErrnoRow{"enxio", ENXIO, RefusalKind::try_later, "no such device or address (ENXIO)"},
                    ErrnoRow{"eagain", EAGAIN, RefusalKind::try_later, "the controller is not live (EAGAIN)"},
                    ErrnoRow{"eintr", EINTR, RefusalKind::try_later, "cancelled (EINTR)"},
                    ErrnoRow{"eio", EIO, RefusalKind::try_later, "input/output error (EIO)"},
                    ErrnoRow{"einval", EINVAL, RefusalKind::invalid, "the kernel refused the value (EINVAL)"},
                    ErrnoRow{"eacces", EACCES, RefusalKind::denied,
                             "not allowed for this user or in this sandbox; root may (EACCES)"},
                    ErrnoRow{"erofs", EROFS, RefusalKind::denied, "the file system is read-only (EROFS)"},
                    ErrnoRow{"enospc", ENOSPC, RefusalKind::try_later, "no space left (ENOSPC)"},
                    ErrnoRow{"emfile", EMFILE, RefusalKind::failed, "Too many open files (EMFILE)"}),
    [](const auto& row) { return row.param.name; });

TEST(AnErrno, ThatNobodyKnowsIsStillAMessage)
{
    for (const int error : {0, -1, 4095, 100000, INT32_MAX, INT32_MIN})
        EXPECT_EQ(errno_refusal("nvme0", "", error).kind, RefusalKind::failed) << error;
}

TEST(AnNvmeStatus, IsReadWithoutMoreAndDoNotRetry)
{
    EXPECT_EQ(status_refusal("nvme0", 0x4002).text(), "nvme0: the controller answered with NVMe status 002h (invalid field)");
    EXPECT_EQ(status_refusal("nvme0", 0x4001).text(), "nvme0: the controller answered with NVMe status 001h (invalid opcode)");
    EXPECT_EQ(status_refusal("nvme0", 0x370).text(),
              "nvme0: the controller answered with NVMe status 370h: the kernel could not reach it");
    EXPECT_EQ(status_refusal("nvme0", 0x370).kind, RefusalKind::try_later);
    EXPECT_EQ(status_refusal("nvme0", 0x371).kind, RefusalKind::try_later);
    EXPECT_EQ(status_refusal("nvme0", 0xffffffff).text(), "nvme0: the controller answered with NVMe status 7ffh");
}

} // namespace
} // namespace nvmepolicy

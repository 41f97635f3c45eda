// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "command_line/usage.h"

namespace nvmepolicy {
namespace {

struct Parsed {
    std::variant<Options, int> result;
    std::string said; ///< on standard error
};

Parsed parse(std::vector<std::string> words)
{
    words.insert(words.begin(), "nvmepolicyd");
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words)
        argv.push_back(word.data());
    testing::internal::CaptureStderr();
    auto result = parse_options(static_cast<int>(argv.size()), argv.data());
    return {std::move(result), testing::internal::GetCapturedStderr()};
}

TEST(TheOptions, TakeAStoryForSimulatedDrives)
{
    const Parsed parsed = parse({"--simulate", "drives", "--story", "battery", "--story-loop"});
    const auto& options = std::get<Options>(parsed.result);
    ASSERT_TRUE(options.story);
    EXPECT_EQ(options.story->name, "battery");
    EXPECT_TRUE(options.story_loop);
    EXPECT_EQ(options.task, Options::Task::serve);
}

TEST(TheOptions, KnowOfNoStoryUnlessOneIsAskedFor)
{
    const Parsed parsed = parse({"--simulate", "drives"});
    EXPECT_FALSE(std::get<Options>(parsed.result).story);
}

struct Mistake {
    std::vector<std::string> words;
    std::string said;
};

class AMistakeWithStories : public testing::TestWithParam<Mistake> {};

TEST_P(AMistakeWithStories, IsAUsageErrorThatListsThem)
{
    const Parsed parsed = parse(GetParam().words);
    const int* code = std::get_if<int>(&parsed.result);
    ASSERT_TRUE(code);
    EXPECT_EQ(*code, exit_usage);
    EXPECT_NE(parsed.said.find(GetParam().said), std::string::npos) << parsed.said;
    for (const Story& story : stories())
        EXPECT_NE(parsed.said.find(story.name), std::string::npos) << parsed.said;
}

INSTANTIATE_TEST_SUITE_P(
    TheOptions, AMistakeWithStories,
    testing::Values(Mistake{{"--story", "battery"}, "--story needs --simulate"},
                    Mistake{{"--simulate", "drives", "--story", "batery"}, R"("batery" (did you mean "battery"?))"},
                    Mistake{{"--simulate", "drives", "--story", "a\x1b[1m"}, R"("a\x1b[1m")"},
                    Mistake{{"--simulate", "drives", "--story", ""}, "a story needs its name"},
                    Mistake{{"--simulate", "drives", "--story-loop"}, "a story needs its name"},
                    Mistake{{"--simulate", "drives", "--story", "battery", "--once"}, "not for --once"},
                    Mistake{{"--simulate", "drives", "--story", "battery", "--dry-run"}, "not for --once, --dry-run"},
                    Mistake{{"--story", "battery", "--restore"}, "or --restore"}));

} // namespace
} // namespace nvmepolicy

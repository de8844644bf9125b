#include "common/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/log_format.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/ostream_sink.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(LogTest, RefusesALevelThatDoesNotExist) {
  for (const char* word : {"loud", "trace", "", "INFO"}) {
    const absl::Status status = SetUpLog(word);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << word;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("\"") + word + "\""));
    EXPECT_EQ(ChangeLogLevel(word, "test").code(), absl::StatusCode::kInvalidArgument) << word;
  }
}

TEST(LogTest, ChangesTheLevelOfARunningProgram) {
  ASSERT_TRUE(SetUpLog("warn").ok());
  EXPECT_FALSE(spdlog::should_log(spdlog::level::info));
  for (const char* level : {"debug", "info", "warn", "error", "off"}) {
    ASSERT_TRUE(ChangeLogLevel(level, "test").ok());
    EXPECT_EQ(GetLogLevel(), level);
  }
  ASSERT_TRUE(SetUpLog("debug").ok());
  EXPECT_TRUE(spdlog::should_log(spdlog::level::info));
}

TEST(LogTest, RefusesAFormatThatDoesNotExist) {
  EXPECT_EQ(*ParseLogFormat("text"), LogFormat::kText);
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  const auto xml = ParseLogFormat("xml");
  EXPECT_EQ(xml.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(xml.status().message()), HasSubstr("\"xml\""));
}

// What the lines of one block are, while it lives.
class CapturedLog {
 public:
  explicit CapturedLog(std::unique_ptr<spdlog::formatter> formatter)
      : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_formatter(std::move(formatter));
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }

  std::string text() const { return text_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

TEST(LogFormatTest, AJsonLineIsOneObjectWhateverTheMessageHolds) {
  CapturedLog log(JsonLogFormatter());
  SetLogDrafter("demo");
  AERIE_LOG_ABOUT(warn, LogFields({.session = "ab12", .trace = "cd34"}), "it is\n\"{}\" \xff",
                  "broken");
  SetLogDrafter("");
  const std::string text = log.text();
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto line = nlohmann::json::parse(text);
  EXPECT_THAT(line["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"));
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["message"], "it is\n\"broken\" \xef\xbf\xbd");
  EXPECT_EQ(line["drafter"], "demo");
  EXPECT_EQ(line["session"], "ab12");
  EXPECT_EQ(line["trace"], "cd34");
}

TEST(LogFormatTest, AJsonLineLeavesOutWhatIsNotKnown) {
  CapturedLog log(JsonLogFormatter());
  AERIE_LOG(error, "bare");
  const auto line = nlohmann::json::parse(log.text());
  EXPECT_EQ(line.size(), 3u) << line;
  EXPECT_EQ(line["level"], "error");
}

TEST(LogFormatTest, ATextLineStaysOneLineAndNamesItsFields) {
  CapturedLog log(TextLogFormatter());
  AERIE_LOG_ABOUT(debug, LogFields({.session = "ab12", .trace = "cd34"}), "two\nlines\x1b[0m");
  EXPECT_THAT(log.text(), HasSubstr(" debug two\\nlines\\x1b[0m session=ab12 trace=cd34\n"));
  EXPECT_THAT(log.text(), MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9]{2}:[0-9]{2} debug [^\n]*\n"));
}

TEST(LogFormatTest, FieldsEndWithTheirLine) {
  CapturedLog log(TextLogFormatter());
  {
    const LogScope outer({.session = "outer"});
    AERIE_LOG_ABOUT(info, LogFields({.session = "inner"}), "first");
    AERIE_LOG(info, "second");
  }
  AERIE_LOG(info, "third");
  EXPECT_THAT(log.text(), HasSubstr("first session=inner\n"));
  EXPECT_THAT(log.text(), HasSubstr("second session=outer\n"));
  EXPECT_THAT(log.text(), HasSubstr("third\n"));
}

TEST(LogFormatTest, FieldsBelowTheLevelAreNotMade) {
  CapturedLog log(TextLogFormatter());
  spdlog::default_logger()->set_level(spdlog::level::warn);
  int made = 0;
  const auto fields = [&made] {
    ++made;
    return LogFields();
  };
  AERIE_LOG_ABOUT(info, fields(), "not seen");
  EXPECT_EQ(made, 0);
  AERIE_LOG_ABOUT(warn, fields(), "seen");
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace aerie

#include "client/loadtest/html_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aerie_version.h"
#include "client/loadtest/host.h"
#include "client/loadtest/svg_chart.h"

namespace aerie::loadtest {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b2330; --quiet: #5d6b7e; --paper: #fff; --grid: #dfe5ec;
  --c0: #1f6feb; --c1: #d97706; --c2: #0f9d76; --c3: #b4348c; --shade: #1f6feb14; --bad: #c4302b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf2; --quiet: #97a4b6; --paper: #12171f;
  --grid: #2a3340; --c0: #58a6ff; --c1: #f0a63c; --c2: #3ecf9f; --c3: #e57ac4;
  --shade: #58a6ff1c; --bad: #ff7b72; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1060px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
p.quiet, .sub { color: var(--quiet); margin: .2em 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: .8em; }
.tile { border: 1px solid var(--grid); border-radius: 8px; padding: .6em .8em; }
.tile b { display: block; font-size: 1.45em; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1em; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg text.title { font-weight: 600; font-size: 14px; } svg text.quiet { fill: var(--quiet); }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--quiet); }
svg polyline { fill: none; }
svg .s0, svg .s1, svg .s2, svg .s3 { stroke-width: 2; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); } svg .s2 { stroke: var(--c2); }
svg .s3 { stroke: var(--c3); } svg .d0 { fill: var(--c0); } svg .d1 { fill: var(--c1); }
svg .d2 { fill: var(--c2); } svg .bar { fill: var(--c0); opacity: .8; }
svg .mark { stroke: var(--c1); stroke-width: 2; stroke-dasharray: 5 3; } svg .shaded { fill: var(--shade); }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
td, th { text-align: right; padding: .2em .6em; border-bottom: 1px solid var(--grid);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; } td.text { text-align: left; white-space: normal; }
.bad { color: var(--bad); font-weight: 600; } code { font-size: .9em; overflow-wrap: anywhere; }
)";

}  // namespace

std::string HtmlHead(const std::string& title, absl::Time started, const ServerFacts& server,
                     const std::vector<std::string>& arguments) {
  const HostFacts host = ReadHostFacts();
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>", title,
      "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n<style>", kStyle,
      "</style></head><body>\n<h1>", title, "</h1>\n<p class=\"quiet\">",
      absl::FormatTime(absl::RFC3339_sec, started, absl::UTCTimeZone()), " &middot; aerie-load ",
      kVersion, " on ", HtmlEscaped(host.cpu), ", ", host.cpus, " processors &middot; server ",
      HtmlEscaped(server.version), ", drafter ", HtmlEscaped(server.drafter), " ",
      HtmlEscaped(server.drafter_version.substr(0, 12)),
      "</p>\n<p class=\"quiet\"><code>aerie-load ", HtmlEscaped(absl::StrJoin(arguments, " ")),
      "</code></p>\n");
}

}  // namespace aerie::loadtest
